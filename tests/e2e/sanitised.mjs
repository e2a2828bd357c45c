// Reads a JSON list of Markdown texts and writes, for each, what is left of it on a page as GitHub makes one: GFM, raw
// HTML parsed as a browser does, then GitHub's list of what may stay. usage: node sanitised.mjs IN.json OUT.json
import fs from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const require = createRequire(process.env.NODE_MODULES + "/");
const load = async (name) => (await import(pathToFileURL(require.resolve(name)).href)).default;
const { unified } = await import(pathToFileURL(require.resolve("unified")).href);
const page = unified()
  .use(await load("remark-parse"))
  .use(await load("remark-gfm"))
  .use(await load("remark-rehype"), { allowDangerousHtml: true })
  .use(await load("rehype-raw"))
  .use(await load("rehype-sanitize"));

function look(node, found, code) {
  if (node.type === "element") {
    found.tags.add(node.tagName);
    for (const name of ["href", "src"]) if (node.properties[name]) found.addresses.push(node.properties[name]);
    if (node.tagName === "tr") found.rows.push(node.children.filter((child) => child.type === "element").length);
    if (node.tagName === "table") found.rows.push(0);
  }
  if (node.type === "text" && !code) found.words.push(node.value);
  if (node.type === "comment" || node.type === "raw") found.addresses.push(node.value);
  for (const child of node.children ?? []) look(child, found, code || node.tagName === "code");
  return found;
}

const texts = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const pages = [];
for (const text of texts) {
  const found = look(await page.run(page.parse(text)), { tags: new Set(), addresses: [], rows: [], words: [] }, false);
  pages.push({ ...found, tags: [...found.tags] });
}
fs.writeFileSync(process.argv[3], JSON.stringify(pages));
