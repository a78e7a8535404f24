// MCP servers that are protected by oidc-provider, a certified authorization server. Arguments: the
// node_modules with it, and the shapes of the servers as JSON. Prints the base URL of each in a line.
// /test/expire and /test/counts of each are for the test.
import { createServer } from 'node:http'
import { pathToFileURL } from 'node:url'

console.info = console.warn = () => {} // it says that this is for tests only
const { default: Provider } = await import(pathToFileURL(process.argv[2] + '/oidc-provider/lib/index.js'))

async function serve(shape) {
  const server = createServer()
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  const base = `http://127.0.0.1:${server.address().port}`
  const mount = shape.mount ?? ''
  const resource = base + '/mcp'
  const counts = { registered: 0, deleted: 0, granted: 0, refreshed: 0, revoked: 0, calls: 0 }
  const provider = new Provider(base + mount, {
    clients: shape.client ? [{
      client_id: 'known', application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'],
      ...(shape.secret ? { client_secret: shape.secret, token_endpoint_auth_method: 'client_secret_basic' } : { token_endpoint_auth_method: 'none' }),
    }] : [],
    scopes: ['openid', 'offline_access', 'read', 'write'],
    features: {
      registration: { enabled: !shape.client },
      registrationManagement: { enabled: !shape.client },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, asked) => {
          if (asked !== resource) throw new Error(`unknown resource ${asked}`)
          return { scope: 'read write', audience: resource, accessTokenFormat: shape.jwt ? 'jwt' : 'opaque', jwt: { sign: { alg: 'RS256' } } }
        },
      },
    },
    issueRefreshToken: (_, client) => !shape.norefresh && client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    cookies: { keys: ['only for tests'] },
    pkce: { required: () => true },
  })
  let tokens = new Set() // that are valid, if they are JWTs
  provider.on('registration_create.success', () => counts.registered++)
  provider.on('registration_delete.success', () => counts.deleted++)
  provider.on('grant.success', (ctx) => { ctx.oidc.params.grant_type === 'refresh_token' ? counts.refreshed++ : counts.granted++ })
  provider.on('grant.success', (ctx) => { if (shape.jwt) tokens.add(ctx.body.access_token) })
  provider.on('refresh_token.destroyed', () => counts.revoked++)
  provider.on('grant.revoked', () => counts.revoked++)
  for (const event of ['server_error', 'grant.error', 'authorization.error', 'registration_create.error', 'revocation.error']) {
    provider.on(event, (_, err) => console.error(event, err.message, err.error_description ?? ''))
  }
  const callback = provider.callback()
  const at = shape.metadata === 'root' ? '/.well-known/oauth-protected-resource' : '/.well-known/oauth-protected-resource/mcp'
  const answer = (res, status, value, headers = {}) => {
    res.writeHead(status, { 'Content-Type': 'application/json', ...headers })
    res.end(JSON.stringify(value))
  }
  let used // the last access token that came
  server.on('request', async (req, res) => {
    const path = req.url.split('?')[0]
    if (path === '/test/counts') return answer(res, 200, counts)
    if (path === '/test/expire') {
      await (await provider.AccessToken.find(used))?.destroy()
      tokens = new Set()
      return answer(res, 200, {})
    }
    if (path === at && shape.metadata !== 'none') return answer(res, 200, { resource, authorization_servers: [base + mount], scopes_supported: ['read'] })
    if (path === '/mcp') {
      const token = (req.headers.authorization ?? '').replace(/^Bearer /, '')
      const known = token && (shape.jwt ? tokens.has(token) : (await provider.AccessToken.find(token))?.aud === resource)
      if (!known) {
        const said = [shape.challenge !== false && `resource_metadata="${base + at}"`, shape.scope && `scope="${shape.scope}"`].filter(Boolean).join(', ')
        return answer(res, 401, {}, { 'WWW-Authenticate': 'Bearer' + (said && ' ' + said) })
      }
      used = token
      counts.calls++
      return answer(res, 200, {})
    }
    if (mount) {
      if (!path.startsWith(mount + '/')) return answer(res, 404, {})
      req.originalUrl = req.url
      req.url = req.url.slice(mount.length)
    }
    callback(req, res)
  })
  return base
}

for (const shape of JSON.parse(process.argv[3])) console.log(await serve(shape))
process.stdin.on('end', () => process.exit()).resume() // with the test
