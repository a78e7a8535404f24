// Clients that others wrote talk to dynmcp over HTTP: to all its servers, at /mcp, and
// to one, at /mcp/fake. Usage: node clients-http.mjs ADDRESS TOKEN DIRECTORY
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport as SSE1 } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { Client as Client2, StreamableHTTPClientTransport as HTTP2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'

const [address, token, scratch] = process.argv.slice(2)
const requestInit = { headers: { Authorization: `Bearer ${token}` } }
const patience = 60_000

// of is a tool of the server behind dynmcp, called without any of these clients.
async function of(name, input) {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } }
  const headers = { ...requestInit.headers, 'Content-Type': 'application/json' }
  const answer = await fetch(`${address}/mcp/fake/message`, { method: 'POST', headers, body: JSON.stringify(body) })
  assert.equal(answer.status, 202)
  return (await answer.json()).result.content[0].text
}

// until waits for what must come.
async function until(what, found) {
  for (const end = Date.now() + patience; ; ) {
    if (await found()) return
    assert.ok(Date.now() < end, `no ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

// talk is what each client does. client has the calls in which the SDKs differ, all
// says that it is at /mcp; changes counts what the client heard of changed lists.
// onlyRequests is that something in between passes on nothing else.
let last = 0
async function talk({ client, call, changes }, all, onlyRequests) {
  const name = (tool) => (all ? `fake/${tool}` : tool)
  const use = (tool, input, options) =>
    all ? call('use_tool', { tool_name: name(tool), tool_input: input }, options) : call(tool, input, options)
  const unique = () => `n${process.pid}_${++last}`

  assert.equal(client.getServerVersion().name, all ? 'dynmcp' : 'fake')
  const shown = async () => JSON.stringify((await client.listTools()).tools)
  const names = (await client.listTools()).tools.map((t) => t.name)
  if (all) assert.deepEqual(names, ['discover_tool', 'use_tool'])
  else assert.ok(names.includes('echo') && !names.includes('use_tool'), `${names}`)

  const nonce = `é <&> ${unique()}`
  assert.ok(JSON.stringify((await use('echo', { nonce })).content).includes(nonce))
  assert.deepEqual((await Promise.all([1, 2, 3, 4].map((n) => use('echo', { nonce: `${nonce}${n}` })))).map((r) => JSON.parse(r.content[0].text).nonce),
    [1, 2, 3, 4].map((n) => `${nonce}${n}`))

  assert.equal((await use('tool_error', { text: 'as it says' })).isError, true)
  await assert.rejects(use('fail', { code: -32099, message: 'as asked' }), (e) => /as asked/.test(e.message) && e.code === -32099)

  if (onlyRequests) return
  const steps = []
  const seen = join(scratch, unique()) // the answer waits for it: the SDKs drop the steps that come together with that
  await use('progress', { steps: 4, until: seen }, { onprogress: (p) => steps.push(p.progress) === 4 && writeFileSync(seen, '') })
  assert.deepEqual(steps, [1, 2, 3, 4])

  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
  const answer = await use('ask', { method: 'elicitation/create', params: { mode: 'form', message: 'Who are you?', requestedSchema } })
  assert.match(JSON.stringify(answer.content), /Ada/)

  // Once a change is heard of, the list has it. The stream on which a client hears of
  // them is opened when it likes.
  const heard = changes()
  for (let n = 0; changes() === heard; n++) {
    assert.ok(n < 60, 'nothing was heard of a changed list')
    await of('add_tool', { name: unique() })
    for (let i = 0; i < 20 && changes() === heard; i++) await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const added = `n${process.pid}_${last}`
  await until(`${added} in the list`, async () => (await shown()).includes(added))

  const stopped = unique()
  const stop = new AbortController()
  const abandoned = use('sleep', { ms: 0, nonce: stopped }, { signal: stop.signal, timeout: patience })
  abandoned.catch(() => {}) // it is looked at below
  const received = async (is) => JSON.parse(await of('received', { n: 20 })).map((line) => JSON.parse(line)).find(is)
  let id
  await until('call that sleeps', async () => (id = (await received((m) => m.params?.arguments?.nonce === stopped))?.id) !== undefined)
  stop.abort('not wanted any more')
  await assert.rejects(abandoned)
  await until('cancellation', () => received((m) => m.method === 'notifications/cancelled' && m.params.requestId === id))
}

// sdk1 and sdk2 connect the client of an SDK over a transport and return what talk needs.
async function sdk1(transport) {
  let changes = 0
  const client = new Client1({ name: 'clients-http', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }))
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => { changes++ })
  await client.connect(transport, { timeout: patience })
  return { client, changes: () => changes, call: (name, input, options) => client.callTool({ name, arguments: input }, undefined, options) }
}
async function sdk2(transport, version) {
  let changes = 0
  const client = new Client2({ name: 'clients-http', version: '2' }, {
    capabilities: { elicitation: { form: {} } },
    ...(version === '2026-07-28' ? { versionNegotiation: { mode: 'auto' } } : {}),
    listChanged: { tools: { autoRefresh: false, onChanged: () => { changes++ } } }
  })
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }))
  await client.connect(transport, { timeout: patience })
  assert.equal(client.getNegotiatedProtocolVersion(), version)
  return { client, changes: () => changes, call: (name, input, options) => client.callTool({ name, arguments: input }, options) }
}

const bin = join(dirname(fileURLToPath(import.meta.url)), 'node_modules', '.bin')
const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: process.env.MCP_REMOTE_CONFIG_DIR }
const bridge = (command, ...args) => ({ command: join(bin, command), args, env, stderr: 'pipe' })
const remote = (url) => bridge('mcp-remote', url, '--header', `Authorization:Bearer ${token}`)
const gateway = (how, url) => bridge('supergateway', how, url, '--oauth2Bearer', token, '--logLevel', 'none')

const everywhere = ['/mcp', '/mcp/fake']
for (const [what, paths, connect, onlyRequests] of [
  ['SDK 1.x', everywhere, (url) => sdk1(new HTTP1(new URL(url), { requestInit }))],
  ['SDK 1.x, HTTP with SSE', ['/mcp/fake'], (url) => sdk1(new SSE1(new URL(url), { requestInit }))],
  ['SDK 2.x', everywhere, (url) => sdk2(new HTTP2(new URL(url), { requestInit }), '2026-07-28')],
  ['SDK 2.x with the handshake', everywhere, (url) => sdk2(new HTTP2(new URL(url), { requestInit }), '2025-11-25')],
  ['mcp-remote, SDK 1.x', everywhere, (url) => sdk1(new Stdio1(remote(url)))],
  ['supergateway, SDK 1.x', everywhere, (url) => sdk1(new Stdio1(gateway('--streamableHttp', url))), 'only requests'],
  ['supergateway, HTTP with SSE', ['/mcp/fake'], (url) => sdk1(new Stdio1(gateway('--sse', url))), 'only requests']
]) {
  for (const path of paths) {
    const connected = await connect(address + path)
    try {
      await talk(connected, path === '/mcp', onlyRequests)
    } catch (e) {
      console.error(`FAIL: ${what}, ${path}`)
      throw e
    }
    await connected.client.close()
    console.log(`ok ${what}, ${path}`)
  }
}
