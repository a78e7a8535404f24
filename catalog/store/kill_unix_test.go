//go:build unix

package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
)

// letter returns one of the two listings that the writers of these tests store in turn.
func letter(letter string) *catalog.Listing {
	l := listing()
	for i := range 300 {
		l.Tools = append(l.Tools, json.RawMessage(fmt.Sprintf(`{"name":"%s%d","description":%q}`, letter, i, strings.Repeat(letter, 100+i))))
	}
	return l
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("DYNMCP_TEST_WRITER"); dir != "" {
		write(dir)
	}
	os.Exit(m.Run())
}

// write stores listings until it is killed, and reports each.
func write(dir string) {
	s, both := New(dir), []*catalog.Listing{letter("a"), letter("b")}
	for i := 0; ; i++ {
		if err := s.Keep(files, both[i%2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("kept")
	}
}

// Writers that are killed at any moment leave one listing or the other, and readers see
// nothing else.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	s, _ := kept(t, letter("a"))
	check := func() {
		t.Helper()
		tools := load(t, s).ReadTools()
		first := string(tools[0][9])
		if want := letter(first).Tools; fmt.Sprintf("%s", tools) != fmt.Sprintf("%s", want) {
			t.Fatalf("got half a listing: %.200s", tools)
		}
	}
	for range 12 {
		var writers []*exec.Cmd
		for range 2 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "DYNMCP_TEST_WRITER="+dirOf(s))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			writers = append(writers, cmd)
			lines := bufio.NewScanner(out)
			for range 3 {
				if !lines.Scan() || lines.Text() != "kept" {
					t.Fatalf("the writer says %q", lines.Text())
				}
			}
			go func() { // a full pipe must not block the writer
				for lines.Scan() {
				}
			}()
		}
		for range 5 {
			check()
		}
		time.Sleep(rand.N(2 * time.Millisecond)) // to be killed at another step each time
		for _, cmd := range writers {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		check()
	}
}
