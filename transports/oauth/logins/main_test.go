package logins

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	zalando "github.com/zalando/go-keyring"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockerDir); dir != "" {
		locker(dir)
		return
	}
	os.Setenv("DYNMCP_KEYRING", "off")
	zalando.MockInit() // never the keyring of the user who runs the tests
	mcptest.Main(m)
}

const lockerDir = "OAUTH_TEST_LOCKER"

// locker is the main function of a process that holds the lock of a login until its standard
// input ends.
func locker(dir string) {
	_, unlock, err := NewFiles(dir).Lock(context.Background(), aKey)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	unlock()
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
