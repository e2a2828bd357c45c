// A page opened from a file may not start a worker, which the search needs: run its script in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
      const load = src => new Promise((resolve, reject) => {
        const script = this.inner.document.createElement("script");
        Object.assign(script, {src, onload: resolve, onerror: reject});
        this.inner.document.body.append(script);
      });
      this.inner.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
      this.loaded = load(new URL(url, document.baseURI).href);
    }
    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", {data})));
    }
  };
}
