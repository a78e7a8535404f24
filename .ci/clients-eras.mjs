// The TypeScript SDK 2.x in auto mode before a server that makes the handshake, which
// asks in the middle of calls: directly, where it falls back to the handshake, and
// through dynmcp, where it speaks 2026-07-28. It has the same both times.
// Usage: node clients-eras.mjs DYNMCP SERVER ARGS…
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const [dynmcp, server, ...args] = process.argv.slice(2)

// run returns what a client gets of the server by a command, and was asked.
async function run(command, args, version) {
  const asked = []
  const client = new Client(
    { name: 'clients-eras', version: '1' },
    { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } }, versionNegotiation: { mode: 'auto' } }
  )
  client.setRequestHandler('elicitation/create', (r) => { asked.push(r.method); return { action: 'accept', content: { name: 'Ada' } } })
  client.setRequestHandler('sampling/createMessage', (r) => {
    asked.push(r.method)
    return { role: 'assistant', content: { type: 'text', text: 'as sampled' }, model: 'm', stopReason: 'endTurn' }
  })
  client.setRequestHandler('roots/list', (r) => { asked.push(r.method); return { roots: [{ uri: 'file:///é', name: 'é' }] } })
  await client.connect(new StdioClientTransport({ command, args }))
  assert.equal(client.getNegotiatedProtocolVersion(), version)
  // The server adds the tools that the client's capabilities allow, and has a look at
  // its roots, a moment after the handshake.
  const wanted = ['trigger-elicitation-request', 'trigger-sampling-request', 'get-roots-list', 'echo']
  let names = []
  for (let n = 0; n < 100 && !wanted.every((name) => names.includes(name)); n++) {
    if (n > 0) await new Promise((resolve) => setTimeout(resolve, 100))
    names = (await client.listTools()).tools.map((t) => t.name)
  }
  const call = async (name, input) => {
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: input })
    return { content, structuredContent, isError }
  }
  const results = {
    elicitation: await call('trigger-elicitation-request', {}),
    sampling: await call('trigger-sampling-request', { prompt: 'Who are you?', maxTokens: 10 }),
    roots: await call('get-roots-list', {}),
    echo: await call('echo', { message: 'é' })
  }
  await client.close()
  // A tool that can only be called as a task is not shown to hosts that have none.
  names = names.filter((name) => name !== 'simulate-research-query')
  return { names: names.sort(), results, asked: [...new Set(asked)].sort() }
}

const direct = await run(server, args, '2025-11-25')
const through = await run(dynmcp, ['--log-level', 'warn', '--expose', 'direct', '--', server, ...args], '2026-07-28')
for (const what of ['names', 'results', 'asked']) {
  assert.deepEqual(through[what], direct[what], what)
  console.log(`ok the same ${what}`)
}
assert.match(JSON.stringify(direct.results), /Ada/)
assert.match(JSON.stringify(direct.results), /as sampled/)
assert.match(JSON.stringify(direct.results), /file:\/\/\/é/)
