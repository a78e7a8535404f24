// The TypeScript SDK 1.x. Usage: node clients-sdk1.mjs DYNMCP ARGS…
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { talk } from './clients-talk.mjs'

const client = new Client({ name: 'clients-sdk1', version: '1' }, { capabilities: { elicitation: {} } })
client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { username: 'Ada', email: 'ada@example.com' } }))
const changed = new Promise((resolve) => client.setNotificationHandler(ToolListChangedNotificationSchema, resolve))
await client.connect(new StdioClientTransport({ command: process.argv[2], args: process.argv.slice(3) }))
assert.equal(client.getServerVersion().name, 'dynmcp')
await talk(client, 'test_elicitation', changed)
await client.close()
