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
		return skipObject(b, i, depth+1)
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

func skipObject(b []byte, i, depth int) (int, error) { return eachMember(b, i, depth, nil) }

// eachMember checks the object at b[i] and calls each for its members, with their
// names in quotes, until each returns false. It returns the offset behind the
// object, or behind the member at which each stopped it.
func eachMember(b []byte, i, depth int, each func(key, value []byte) bool) (int, error) {
	if depth > maxDepth {
		return i, ErrTooDeep
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		key, value, end, err := member(b, i, depth)
		if err != nil {
			return end, err
		}
		if each != nil && !each(key, value) {
			return end, nil
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

// member reads `"key": value` at b[i]; key keeps its quotes. If the value is broken
// the key is returned with the error.
func member(b []byte, i, depth int) (key, value []byte, end int, err error) {
	if i >= len(b) || b[i] != '"' {
		return nil, nil, i, syntax(b, i, "a member's name wanted")
	}
	k, err := skipString(b, i)
	if err != nil {
		return nil, nil, k, err
	}
	key = b[i:k]
	if i = space(b, k); i >= len(b) || b[i] != ':' {
		return key, nil, i, syntax(b, i, "':' wanted")
	}
	i = space(b, i+1)
	if end, err = skip(b, i, depth); err != nil {
		return key, nil, end, err
	}
	return key, b[i:end], end, nil
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

// skipString checks a string many bytes at a time: most of a large message is long
// strings.
func skipString(b []byte, i int) (int, error) {
	for i++; ; {
		i = plainEnd(b, i)
		if i >= len(b) {
			return i, ErrUnexpectedEnd
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return i, syntax(b, i, "control character in a string")
		case c == '\\':
			end, err := skipEscape(b, i)
			if err != nil {
				return end, err
			}
			i = end
		default:
			i++
		}
	}
}

// plainEnd returns the offset of the first byte at or after i that ends a string or
// has to be looked at, or of one of the last seven bytes.
func plainEnd(b []byte, i int) int {
	for ; i+32 <= len(b); i += 32 {
		four := b[i : i+32 : i+32]
		if specials(binary.LittleEndian.Uint64(four))|specials(binary.LittleEndian.Uint64(four[8:]))|
			specials(binary.LittleEndian.Uint64(four[16:]))|specials(binary.LittleEndian.Uint64(four[24:])) != 0 {
			break
		}
	}
	for ; i+8 <= len(b); i += 8 {
		if special := specials(binary.LittleEndian.Uint64(b[i:])); special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	return i
}

// specials marks, by the high bit of each byte, the bytes of v that are '"', '\\' or
// below 0x20. Bytes above the lowest mark may be marked wrongly; only the lowest is
// used.
func specials(v uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := v^(ones*'"'), v^(ones*'\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash | (v-ones*0x20)&^v) & highs
}

func skipEscape(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return i + 1, ErrUnexpectedEnd
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(b) {
				return j, ErrUnexpectedEnd
			}
			if !isHex(b[j]) {
				return j, syntax(b, j, "four hexadecimal digits wanted")
			}
		}
		return i + 6, nil
	}
	return i + 1, syntax(b, i+1, "unknown escape")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
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

func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

func skipLiteral(b []byte, i int, want string) (int, error) {
	for j := range len(want) {
		if i+j >= len(b) {
			return i + j, ErrUnexpectedEnd
		}
		if b[i+j] != want[j] {
			return i + j, syntax(b, i+j, "'"+want+"' wanted")
		}
	}
	return i + len(want), nil
}

// space returns the offset of the first byte at or after i that is not JSON
// white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
