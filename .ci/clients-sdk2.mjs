// The TypeScript SDK 2.x in auto mode. Usage: node clients-sdk2.mjs DYNMCP ARGS…
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { talk } from './clients-talk.mjs'

let hear
const changed = new Promise((resolve) => { hear = resolve })
const client = new Client(
  { name: 'clients-sdk2', version: '1' },
  {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: 'auto' },
    listChanged: { tools: { autoRefresh: false, onChanged: hear } }
  }
)
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }))
client.onlyOptions = true
await client.connect(new StdioClientTransport({ command: process.argv[2], args: process.argv.slice(3) }))
assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28')
await talk(client, 'test_input_required_result_elicitation', changed)
await client.close()
