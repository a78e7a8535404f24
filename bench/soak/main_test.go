package main

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("SOAK_TEST_WAITS") != "" { // says so, and waits for the end of its input
		fmt.Println("here")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}
