// Command upstream is the server of bench/cluster. It echoes nonces, and writes each to its ledger
// before it answers. It uses the protocol of the handshake era on stdio or, with -http, without
// sessions at an address that it prints.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
)

func main() {
	name := flag.String("name", "", "the `name` of the server")
	dir := flag.String("ledgers", "", "the `directory` of its ledger")
	linger := flag.Duration("linger", 0, "how long it runs after the end of stdin")
	address := flag.String("http", "", "serve HTTP at this `address` instead of stdio")
	flag.Parse()
	log.SetFlags(0)
	book, err := ledger.Create(*dir, *name, os.Getenv("REPLICA"))
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for range time.Tick(ledger.Beat) {
			must(book.Beat())
		}
	}()
	if *address != "" {
		log.Fatal(serve(*address, book))
	}
	onStdio(book)
	time.Sleep(*linger)
	must(book.End())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// onStdio serves stdio until stdin ends and all requests are answered.
func onStdio(book *ledger.Writer) {
	var mu sync.Mutex // of stdout
	var calls sync.WaitGroup
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		calls.Go(func() {
			if answer := answer(line, book); answer != nil {
				mu.Lock()
				defer mu.Unlock()
				_, _ = os.Stdout.Write(append(answer, '\n')) // fails only if the client is gone
			}
		})
	}
	calls.Wait()
}

func serve(address string, book *ledger.Writer) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", ln.Addr())
	return http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || err != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		text := answer(body, book)
		if text == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
}

// answer returns the answer to a message, nil for a notification. A call takes its ms milliseconds.
func answer(line []byte, book *ledger.Writer) []byte {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
			Arguments       struct {
				Nonce string
				MS    int
			}
		}
	}
	if err := json.Unmarshal(line, &m); err != nil {
		log.Fatalf("no JSON: %q", line)
	}
	if m.ID == nil || m.Method == "" {
		return nil
	}
	said := `"error":{"code":-32601,"message":"there is no such method"}`
	switch m.Method {
	case "initialize":
		version := cmp.Or(m.Params.ProtocolVersion, "2025-11-25")
		if strings.HasPrefix(version, "2026") {
			version = "2025-11-25"
		}
		said = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"upstream","version":"1"}}`, version)
	case "ping":
		said = `"result":{}`
	case "tools/list":
		said = `"result":{"tools":[{"name":"echo","description":"Echoes a nonce.","inputSchema":{"type":"object","properties":{"nonce":{"type":"string"},"ms":{"type":"integer"}},"required":["nonce"]}}]}`
	case "tools/call":
		nonce := m.Params.Arguments.Nonce
		must(book.Call(nonce))
		time.Sleep(time.Duration(m.Params.Arguments.MS) * time.Millisecond)
		said = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}],"structuredContent":{"nonce":%q}}`, nonce, nonce)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, said)
}
