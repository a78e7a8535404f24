// What client libraries of others show of a call that failed: a tool under its own name, a
// resource and a prompt, refused before the server has it, and lost with the server. The text of the
// exception or the error that a program gets says whether the call ran, and what to do.
// Usage: node clients-failures.mjs DYNMCP ARGS…, for servers of .ci/clients
import assert from 'node:assert/strict'
import { MultiServerMCPClient } from '@langchain/mcp-adapters'
import { createMCPClient } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'
import { MCPClient } from 'mcp-client'

const [command, ...args] = process.argv.slice(2)
const me = { name: 'clients-failures', version: '1' }

// sdk returns what the rest of the test needs of a client of an SDK.
const sdk = (client) => ({
  call: (name) => client.callTool({ name, arguments: {} }),
  read: (uri) => client.readResource({ uri }),
  prompt: (name) => client.getPrompt({ name }),
  close: () => client.close()
})

const libraries = {
  'TypeScript SDK 1.x': async () => {
    const client = new Client1(me)
    await client.connect(new Stdio1({ command, args }))
    return sdk(client)
  },
  'TypeScript SDK 2.x': async () => {
    const client = new Client2(me, { versionNegotiation: { mode: 'auto' } })
    await client.connect(new Stdio2({ command, args }))
    return sdk(client)
  },
  '@ai-sdk/mcp': async () => {
    const client = await createMCPClient({ transport: new Experimental_StdioMCPTransport({ command, args }) })
    const tools = await client.tools()
    return {
      call: (name) => tools[name].execute({}, { toolCallId: '1', messages: [] }),
      read: (uri) => client.readResource({ uri }),
      prompt: (name) => client.getPrompt({ name }),
      close: () => client.close()
    }
  },
  '@langchain/mcp-adapters': async () => {
    const client = new MultiServerMCPClient({ mcpServers: { dynmcp: { transport: 'stdio', command, args } } })
    const tools = await client.getTools()
    return {
      call: (name) => tools.find((tool) => tool.name === name).invoke({}),
      read: (uri) => client.readResource('dynmcp', uri),
      prompt: async (name) => (await client.getClient('dynmcp')).getPrompt({ name }),
      close: () => client.close()
    }
  },
  'mcp-client': async () => {
    const client = new MCPClient(me)
    await client.connect({ type: 'stdio', command, args, env: process.env })
    return {
      call: (name) => client.callTool({ name, arguments: {} }),
      read: (uri) => client.getResource({ uri }),
      prompt: (name) => client.getPrompt({ name }),
      close: () => client.close()
    }
  }
}

for (const [name, connect] of Object.entries(libraries)) {
  const client = await connect()
  for (const [what, attempt, outcome, advice] of [
    ['a tool that is refused', () => client.call('tools__big'), /outcome not_sent: the call did not run/, /have your user/],
    ['a tool that is lost', () => client.call('tools__echo'), /outcome unknown: the call may have run/, /check whether it took effect/],
    ['a resource that is lost', () => client.read('fake://resources/text'), /outcome unknown: the call may have run/, /check whether it took effect/],
    ['a prompt that is lost', () => client.prompt('prompts.greet'), /outcome unknown: the call may have run/, /check whether it took effect/]
  ]) {
    await assert.rejects(attempt, (e) => {
      const begins = e.message.search(/(tools|resources|prompts): /) // a library may put words of its own before
      for (const words of [outcome, advice]) assert.match(e.message.slice(begins, begins + 200), words, `${name}, ${what}: ${e.message}`)
      return true
    })
  }
  await client.close()
  console.log(`ok ${name}`)
}
