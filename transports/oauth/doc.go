// Package oauth logs in to upstreams, and adds bearer tokens to requests.
//
// The SDK implements the protocol (discovery, registration, PKCE, the checks of state and
// iss); this package implements the rest:
//
//	flow.go        a login by a person: dynmcp login
//	callback.go    the listener for the browser's redirect
//	browser.go     opens the browser
//	web.go         logins of a gateway's users, whose browsers come back to the gateway
//	machine.go     a login without a person: client_credentials
//	grant*.go      client authentication, and tokens of a company's identity provider
//	exchange.go    tokens of each user, exchanged for that of the caller
//	session.go     a token for each request, renewed before it expires
//	refresh.go     refreshes, one at a time among all processes
//	dpop.go        tokens that are bound to a key, with a proof in each request
//	logout.go      deletes and revokes a login
//	resource.go    the address of a server, which is spelled in many ways
//	metadata.go    decides which metadata the SDK's discovery may use
//	client.go      the HTTP client of a login
//	guard.go       checks every address that it is to request
//
// Package logins, below, stores what a login results in.
//
// A request never opens a browser. Without a login it is sent unchanged, and the upstream's
// 401 becomes a failure with a hint ([Session.Hint]). After it, and after any change of the user's
// logins, the store is read again, so that the next call after a login has it.
//
// The package knows neither the connections to upstreams nor the callers: cmd/dynmcp passes
// [Session.Transport] and [Session.Hint] to package upstream as functions.
package oauth
