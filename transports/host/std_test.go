package host

import (
	"fmt"
	"io"
	"os"
	"testing"
)

// kept keeps the streams of Std from being collected, which would close descriptors that may be
// in use again.
var kept []any

// A stray print does not reach the host.
func TestStrayPrintsGoToStderr(t *testing.T) {
	in, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, errs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	realIn, realOut, realErr := os.Stdin, os.Stdout, os.Stderr
	os.Stdin, os.Stdout, os.Stderr = in, out, errs
	defer func() { os.Stdin, os.Stdout, os.Stderr = realIn, realOut, realErr }()
	guest, host, restore := Std()
	kept = append(kept, guest, host)
	fmt.Println("stray")
	_, _ = io.WriteString(host, "answer\n")
	fmt.Print("and more")
	restore()
	out.Close()
	errs.Close()
	if got, err := io.ReadAll(stdout); string(got) != "answer\n" {
		t.Errorf("the host got %q, %v", got, err)
	}
	if got, err := io.ReadAll(stderr); string(got) != "stray\nand more" {
		t.Errorf("stderr got %q, %v", got, err)
	}
}
