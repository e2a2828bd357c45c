# The image of the action. GitHub's runner needs it to run as root, in the folder that it mounts.
# Where the commits of a checkout are read without an API, and where SSH signatures are verified: two programs, without
# the packages around them (git alone would bring Perl). They link to what the base image has.
FROM python:3.12-slim AS programs
# hadolint ignore=DL3008 # the release that the base image is of decides
RUN apt-get update && apt-get install --yes --no-install-recommends git openssh-client && rm -rf /var/lib/apt/lists/*

FROM python:3.12-slim

LABEL org.opencontainers.image.title="rag-eval-action" \
      org.opencontainers.image.description="Says in a pull request whether the answers of a RAG system got worse" \
      org.opencontainers.image.licenses="MIT"

COPY --from=programs /usr/bin/git /usr/bin/ssh-keygen /usr/bin/
COPY requirements/action.txt /opt/rag-eval/requirements.txt
RUN python -m pip install --no-cache-dir --no-compile --no-deps --only-binary :all: --require-hashes \
      -r /opt/rag-eval/requirements.txt

COPY src/rag_eval /opt/rag-eval/rag_eval
COPY schemas /opt/rag-eval/rag_eval/_schemas
COPY docs/glossary.md docs/findings.md docs/gold.md /opt/rag-eval/rag_eval/_docs/
COPY examples/quickstart /opt/rag-eval/rag_eval/_examples/quickstart
# Byte code that names its source by a hash: the same sources give the same image, whenever and wherever it is built.
RUN site="$(python -c 'import site; print(site.getsitepackages()[0])')" \
 && echo /opt/rag-eval > "${site}/rag_eval.pth" \
 && python -m compileall -q --invalidation-mode unchecked-hash /opt/rag-eval "${site}"

# -I: nothing of the workspace, its folder or its environment is ever imported. -B: nothing is written beside the code.
ENTRYPOINT ["/usr/local/bin/python", "-I", "-B", "-m", "rag_eval.action"]
