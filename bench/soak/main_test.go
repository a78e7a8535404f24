package main

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("SOAK_TEST_WAITS") != "" { // a process of TestGuardsAreKnown
		fmt.Println("here")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}
