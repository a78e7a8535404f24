# Sourced by .ci/conformance, .ci/clients, .ci/clients-http and .ci/release: what they use from npm, pinned,
# in a directory outside the repository that is kept between runs. Sets npm_dir
# and puts Node 22, which the suite and the clients need, first on PATH.
npm_packages=(
  node@22.23.3
  @modelcontextprotocol/conformance@0.2.0-alpha.12
  @modelcontextprotocol/server-everything@2026.8.31
  @modelcontextprotocol/sdk@1.32.2
  @modelcontextprotocol/client@2.4.0
  @modelcontextprotocol/inspector@2.12.0
  @ai-sdk/mcp@2.0.99
  @langchain/core@1.4.0
  @langchain/mcp-adapters@1.1.4
  mcp-client@1.13.1
  supergateway@4.0.0
  mcp-remote@0.15.1
  @anthropic-ai/mcpb@2.1.2
  @cyclonedx/cyclonedx-library@10.3.0
  ajv@8.20.0
  ajv-formats@3.0.1
  ajv-formats-draft2019@1.6.1
  dockerfile-utils@0.16.3
)
npm_dir="${XDG_CACHE_HOME:-$HOME/.cache}/dynmcp-ci/npm-$(printf '%s\n' "${npm_packages[@]}" | cksum | cut -d ' ' -f 1)"
if [ ! -e "$npm_dir/complete" ]; then
  command -v npm >/dev/null || { echo "npm is needed, it comes with Node.js" >&2; exit 1; }
  rm -rf "$npm_dir"
  mkdir -p "$npm_dir"
  echo '{"private":true}' >"$npm_dir/package.json"
  npm install --prefix "$npm_dir" --save-exact --no-audit --no-fund --loglevel error "${npm_packages[@]}" >&2
  touch "$npm_dir/complete"
fi
PATH="$npm_dir/node_modules/node/bin:$PATH"
node -e 'process.exit(process.versions.node.startsWith("22.") ? 0 : 1)' || { echo "npm's node@22 does not run here" >&2; exit 1; }
