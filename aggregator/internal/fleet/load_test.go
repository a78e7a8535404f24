package fleet

import (
	"errors"
	"testing"

	"github.com/dynmcp/dynmcp/transports"
)

// An error names both attempts, and a missing login goes before what the other attempt met.
func TestErrorsOfBothAttempts(t *testing.T) {
	post := &transports.Failure{Upstream: "a", Code: transports.CodeUnreachable, Cause: errors.New("HTTP status 405")}
	get := &transports.Failure{Upstream: "a", Code: transports.CodeUnreachable, Cause: errors.New("HTTP status 404")}
	login := &transports.Failure{Upstream: "a", Code: transports.CodeAuthRequired, Cause: errors.New("HTTP status 401")}
	if got, want := bothFailed(post, get).Error(), "a: HTTP status 405; then, as a server with SSE: HTTP status 404"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := bothFailed(post, login); got != error(login) {
		t.Errorf("got %v", got)
	}
	if post.Cause.Error() != "HTTP status 405" {
		t.Error("the first error was changed")
	}
}
