package syntax

import (
	"bytes"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

var (
	json5Token = lazyregexp.New(`(?s)^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|//[^\n]*|/\*.*?\*/|[A-Za-z_$][\w$.]*|\d[\w.]*)`)
	plainWord  = lazyregexp.New(`^(?:true|false|null)$`)
)

// JSONOf5 returns JSON with comments for JSON5: texts in single quotes and keys without quotes get
// double ones.
func JSONOf5(data []byte) []byte {
	var out bytes.Buffer
	for len(data) > 0 {
		token := json5Token().Find(data)
		if token == nil {
			out.WriteByte(data[0])
			data = data[1:]
			continue
		}
		data = data[len(token):]
		after := bytes.TrimLeft(data, " \t\r\n")
		isKey := len(after) > 0 && after[0] == ':'
		word := string(token)
		switch {
		case token[0] == '\'':
			inner := bytes.ReplaceAll(bytes.ReplaceAll(token[1:len(token)-1], []byte(`\'`), []byte(`'`)), []byte(`"`), []byte(`\"`))
			out.WriteString(`"` + string(inner) + `"`)
		case token[0] == '"' || token[0] == '/' || plainWord().MatchString(word) && !isKey:
			out.Write(token)
		case isKey:
			out.WriteString(Quote(word))
		default:
			out.Write(token)
		}
	}
	return out.Bytes()
}
