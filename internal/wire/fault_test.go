package wire

import (
	"errors"
	"strings"
	"testing"
)

func first(ids [][]byte) []byte {
	if len(ids) == 0 {
		return nil
	}
	return ids[0]
}

// The id that is found in an invalid line decides which call fails.
func TestFaultNamesItsCall(t *testing.T) {
	const limit = 32 << 10
	x := strings.Repeat(`{"a":[1,"b,\"id\":6"],"id":5},`, 2000)
	x = "[" + x[:len(x)-1] + "]"
	bad := `"\x"`
	for _, test := range []struct {
		name, line     string
		asks, answered string
	}{
		{"answer, id first", `{"jsonrpc":"2.0","id":3,"result":` + x + `}`, "", "3"},
		{"answer, id last", `{"result":` + x + `,"jsonrpc":"2.0","id":3}`, "", "3"},
		{"answer, id very last", `{"jsonrpc":"2.0","result":` + x + ` , "id" : "s" } `, "", `"s"`},
		{"answer, id between", `{"jsonrpc":"2.0","result":` + x + `,"id":3,"_meta":` + x + `}`, "", ""},
		{"error", `{"jsonrpc":"2.0","id":3,"error":{"data":` + x + `}}`, "", "3"},
		{"request, id first", `{"jsonrpc":"2.0","id":3,"method":"m","params":` + x + `}`, "3", ""},
		{"request, id last", `{"method":"m","params":` + x + `,"jsonrpc":"2.0","id":3}`, "3", ""},
		{"request, method between", `{"params":` + x + `,"method":"m","x":` + x + `,"jsonrpc":"2.0","id":3}`, "3", ""},
		{"notification", `{"jsonrpc":"2.0","method":"m","params":` + x + `}`, "", ""},
		{"no JSON, but an answer", `{"jsonrpc":"2.0","id":3,"result":` + bad + `}`, "", "3"},
		{"no JSON, id behind", `{"result":` + bad + `,"jsonrpc":"2.0","id":3}`, "", "3"},
		{"neither result nor error", `{"jsonrpc":"2.0","id":3}`, "", "3"},
		{"no JSON, a comma and quotes in strings behind", `{"result":` + bad + `,"x":"a\",\\","_meta":{"y":[1,"}"]},"id":3}`, "", "3"},
		{"no JSON, brackets that do not match", `{"result":[}}],"jsonrpc":"2.0","id":3}`, "", "3"},
		{"a log line", `{"level":30,"id":3,"msg":"listening"}`, "", ""},
		{"a long log line", `{"level":30,"msg":` + x + `,"id":3}`, "", ""},
		{"text", `listening, "id":3}`, "", ""},
		{"nothing", strings.Repeat("x", limit+1), "", ""},
	} {
		_, err := NewReader(strings.NewReader(test.line+"\n"), limit).Next()
		var fault *Fault
		if !errors.As(err, &fault) {
			t.Errorf("%s: got %v, want a fault", test.name, err)
			continue
		}
		if got := string(fault.Asks()); got != test.asks {
			t.Errorf("%s: asks %q, want %q", test.name, got, test.asks)
		}
		if got := string(first(fault.Answers())); got != test.answered {
			t.Errorf("%s: answers %q, want %q", test.name, got, test.answered)
		}
	}
}
