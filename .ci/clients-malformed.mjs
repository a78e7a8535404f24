// A server whose lists hold malformed entries takes nothing away from the others:
// both versions of the TypeScript SDK refuse a list for one entry they do not like.
// Usage: node clients-malformed.mjs 1|2|2-handshake DYNMCP ARGS…
import assert from 'node:assert/strict'

const [sdk, command, ...args] = process.argv.slice(2)
const [{ Client }, { StdioClientTransport }] = await Promise.all(sdk === '1'
  ? [import('@modelcontextprotocol/sdk/client/index.js'), import('@modelcontextprotocol/sdk/client/stdio.js')]
  : [import('@modelcontextprotocol/client'), import('@modelcontextprotocol/client/stdio')])
const client = new Client({ name: 'clients-malformed', version: '1' }, sdk === '2' ? { versionNegotiation: { mode: 'auto' } } : {})
await client.connect(new StdioClientTransport({ command, args }))

// both asserts that a list holds what is good, and nothing that begins like what is not.
function both(what, listed, wanted, malformed) {
  for (const name of wanted) assert.ok(listed.includes(name), `${what} lack ${name}: ${listed}`)
  assert.deepEqual(listed.filter((name) => malformed.test(name)), [])
  console.log(`ok ${what}`)
}
both('tools', (await client.listTools()).tools.map((t) => t.name), ['good__echo', 'bad__echo', 'bad__f1', 'bad__f2'], /^bad__m\d/)
both('prompts', (await client.listPrompts()).prompts.map((p) => p.name), ['good.greet', 'bad.greet', 'f1'], /^m\d/)
both('resources', (await client.listResources()).resources.map((r) => r.uri), ['fake://good/text', 'fake://bad/text', 'f:1'], /^m:/)
both('templates', (await client.listResourceTemplates()).resourceTemplates.map((t) => t.uriTemplate),
  ['fake://good/item/{id}', 'fake://bad/item/{id}', 'f:{x}'], /^m:/)
await client.close()
