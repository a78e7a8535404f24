package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// maxDepth is how deep values may nest. encoding/json has the same limit, so a peer
// written in Go can read whatever passes.
const maxDepth = 10_000

// ErrUnexpectedEnd means that the text ended inside a value. The next line may
// complete it.
var ErrUnexpectedEnd = errors.New("unexpected end of JSON")

// ErrTooDeep means that a text nests deeper than is allowed.
var ErrTooDeep = errors.New("nested too deeply")

// A SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int // bytes from the start of the text
	What   string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.What)
}

func syntax(b []byte, i int, what string) error {
	if i >= len(b) {
		return ErrUnexpectedEnd
	}
	return &SyntaxError{Offset: i, What: what}
}

// Valid reports whether b is exactly one JSON value (RFC 8259), with space around
// it allowed.
func Valid(b []byte) bool {
	looked(len(b))
	end, err := Skip(b, space(b, 0))
	return err == nil && space(b, end) == len(b)
}

// Skip checks the value that starts at b[i] and returns the offset behind it.
func Skip(b []byte, i int) (int, error) { return skip(b, i, 0) }

func skip(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, ErrUnexpectedEnd
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{':
		return eachMember(b, i, depth+1, func(_ []byte, i int) (int, error) { return skip(b, i, depth+1) })
	case c == '[':
		return skipArray(b, i, depth+1)
	case c == '-' || '0' <= c && c <= '9':
		return skipNumber(b, i)
	case c == 't':
		return skipLiteral(b, i, "true")
	case c == 'f':
		return skipLiteral(b, i, "false")
	case c == 'n':
		return skipLiteral(b, i, "null")
	}
	return i, syntax(b, i, "a value cannot start here")
}

// eachMember checks the object at b[i] except for the values of its members. It calls
// value with each quoted name and the offset of its value; value checks that and returns the
// offset behind it. eachMember returns the offset behind the object.
func eachMember(b []byte, i, depth int, value func(key []byte, i int) (end int, err error)) (int, error) {
	if depth > maxDepth {
		return i, ErrTooDeep
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		key, at, err := memberName(b, i)
		if err != nil {
			return at, err
		}
		end, err := value(key, at)
		if err != nil {
			return end, err
		}
		i = space(b, end)
		switch {
		case i >= len(b):
			return i, ErrUnexpectedEnd
		case b[i] == '}':
			return i + 1, nil
		case b[i] != ',':
			return i, syntax(b, i, "',' or '}' wanted")
		}
		i = space(b, i+1)
	}
}

// memberName reads `"key":` at b[i] and returns the quoted key and the offset of the
// value. If the colon is missing, the key is returned with the error.
func memberName(b []byte, i int) (key []byte, at int, err error) {
	if i >= len(b) || b[i] != '"' {
		return nil, i, syntax(b, i, "a member's name wanted")
	}
	k, err := skipString(b, i)
	if err != nil {
		return nil, k, err
	}
	key = b[i:k]
	if i = space(b, k); i >= len(b) || b[i] != ':' {
		return key, i, syntax(b, i, "':' wanted")
	}
	return key, space(b, i+1), nil
}

// member reads `"key": value` at b[i]; key keeps its quotes. If the value is invalid,
// the key is returned with the error.
func member(b []byte, i, depth int) (key, value []byte, end int, err error) {
	key, at, err := memberName(b, i)
	if err != nil {
		return key, nil, at, err
	}
	if end, err = skip(b, at, depth); err != nil {
		return key, nil, end, err
	}
	return key, b[at:end], end, nil
}

func skipArray(b []byte, i, depth int) (int, error) {
	if depth > maxDepth {
		return i, ErrTooDeep
	}
	if i = space(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := skip(b, i, depth)
		if err != nil {
			return end, err
		}
		i = space(b, end)
		switch {
		case i >= len(b):
			return i, ErrUnexpectedEnd
		case b[i] == ']':
			return i + 1, nil
		case b[i] != ',':
			return i, syntax(b, i, "',' or ']' wanted")
		}
		i = space(b, i+1)
	}
}

func skipNumber(b []byte, i int) (int, error) {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, ErrUnexpectedEnd
	case b[i] == '0':
		i++
	case '1' <= b[i] && b[i] <= '9':
		i = digits(b, i)
	default:
		return i, syntax(b, i, "a digit wanted")
	}
	if i < len(b) && b[i] == '.' {
		end := digits(b, i+1)
		if end == i+1 {
			return end, syntax(b, end, "a digit wanted")
		}
		i = end
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := digits(b, i)
		if end == i {
			return end, syntax(b, end, "a digit wanted")
		}
		i = end
	}
	return i, nil
}

// digits returns the offset of the first byte at or after i that is not a digit.
func digits(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:]) ^ ones*'0' // a digit is 0 to 9 now
		if others := (v&sevens + ones*(0x80-10) | v) & highs; others != 0 {
			return i + bits.TrailingZeros64(others)/8
		}
	}
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

func skipLiteral(b []byte, i int, want string) (int, error) {
	end := min(i+len(want), len(b))
	if string(b[i:end]) == want {
		return end, nil
	}
	at := i
	for at < end && b[at] == want[at-i] {
		at++
	}
	return at, syntax(b, at, "'"+want+"' wanted")
}

// space returns the offset of the first byte at or after i that is not JSON
// white space.
func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
