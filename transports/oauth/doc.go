// Package oauth logs in to upstreams, stores logins, and adds bearer tokens to requests.
//
// The SDK implements the protocol (discovery, registration, PKCE, the checks of state and
// iss); this package implements the rest:
//
//	flow.go       a login by a person: dynmcp login
//	callback.go   the listener for the browser's redirect
//	browser.go    opens the browser
//	machine.go    client_credentials, a login without a person
//	assertion.go  client authentication with a signed token in place of a secret
//	enterprise.go tokens from the identity provider of a company
//	session.go    a token for each request, renewed before it expires
//	refresh.go    refreshes, one at a time among all processes
//	dpop.go       tokens that are bound to a key, with a proof in each request
//	logout.go     deletes and revokes a login
//	login.go      the result of a login
//	store.go      stores logins, with a lock
//	files.go      a store in the user's files
//	shared.go     a store in the state that replicas share
//	keyring.go    the key that seals logins, in the system's keyring
//	resource.go   the address of a server, which is spelled in many ways
//	metadata.go   decides which metadata the SDK's discovery may use
//	guard.go      the HTTP client for all requests, which checks every address
//
// A request never opens a browser. Without a login it is sent unchanged, and the upstream's
// 401 becomes a failure with a hint ([Session.Hint]). After it, and after any change of the user's
// logins, the store is read again, so that the next call after a login has it.
//
// The package knows neither the connections to upstreams nor the callers: cmd/dynmcp passes
// [Session.Transport] and [Session.Hint] to package upstream as functions.
package oauth
