package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A writer writes one file with mutants. Insertions are ordered by offset, those at one offset in the
// order of the calls of put.
type writer struct {
	*subject
	file    string
	source  []byte
	set     *token.FileSet
	without map[string]bool
	edits   []edit
}

type edit struct {
	at, removes int
	with        string
}

func (w *writer) put(at token.Pos, removes int, format string, args ...any) {
	w.edits = append(w.edits, edit{w.set.Position(at).Offset, removes, fmt.Sprintf(format, args...)})
}

func (w *writer) text() []byte {
	slices.SortStableFunc(w.edits, func(a, b edit) int { return a.at - b.at })
	var b bytes.Buffer
	last := 0
	for _, e := range w.edits {
		b.Write(w.source[last:e.at])
		b.WriteString(e.with)
		last = e.at + e.removes
	}
	b.Write(w.source[last:])
	return b.Bytes()
}

// add adds a mutant of an operator and returns its id.
func (w *writer) add(kind string, operator token.Pos) int {
	at := w.set.Position(operator)
	line := w.source[at.Offset-at.Column+1:]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	marked := fmt.Sprintf("%s@@%s", line[:at.Column-1], line[at.Column-1:])
	m := &mutant{id: len(w.mutants) + 1, kind: kind, file: w.file, line: at.Line}
	m.named = fmt.Sprintf("%s/%s %s %s", w.name, w.file, kind, strings.TrimSpace(marked))
	w.mutants = append(w.mutants, m)
	return m.id
}

func (w *writer) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case *ast.ArrayType:
			return false // its length
		case *ast.BinaryExpr:
			return w.without[fmt.Sprint(w.file, ":", w.set.Position(n.OpPos).Line)] || !w.binary(n)
		case *ast.IncDecStmt:
			w.step(n)
			return false
		}
		return true
	})
}

// calls are the functions that replace operators.
var calls = map[token.Token]string{
	token.LSS: "zzLess", token.GTR: "zzGreater", token.LEQ: "zzLessOrEqual", token.GEQ: "zzGreaterOrEqual",
	token.ADD: "zzAdd", token.SUB: "zzSubtract", token.MUL: "zzMultiply", token.QUO: "zzDivide", token.REM: "zzRemain",
}

// binary inserts the mutants of an operator, and reports whether it has any.
func (w *writer) binary(n *ast.BinaryExpr) bool {
	call := func(kind string) {
		w.put(n.Pos(), 0, "%s(%d, ", calls[n.Op], w.add(kind, n.OpPos))
		w.walk(n.X)
		w.put(n.OpPos, len(n.Op.String()), ", ")
		w.walk(n.Y)
	}
	switch n.Op {
	case token.EQL, token.NEQ:
		id := w.add("CONDITIONALS_NEGATION", n.OpPos)
		w.put(n.Pos(), 0, "((")
		w.walk(n.X)
		w.walk(n.Y)
		w.put(n.End(), 0, ") != zzIs(%d))", id)
	case token.LSS, token.GTR, token.LEQ, token.GEQ:
		id := w.add("CONDITIONALS_NEGATION", n.OpPos)
		w.put(n.Pos(), 0, "(")
		call("CONDITIONALS_BOUNDARY")
		w.put(n.End(), 0, ") != zzIs(%d))", id)
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		if isText(n) {
			return false
		}
		call("ARITHMETIC_BASE")
		w.put(n.End(), 0, ")")
	default:
		return false
	}
	return true
}

// isText reports whether an expression is known to be a string.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.ParenExpr:
		return isText(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isText(e.X) || isText(e.Y))
	}
	return false
}

// step inserts the mutant of ++ or --.
func (w *writer) step(n *ast.IncDecStmt) {
	from, to := w.set.Position(n.Pos()).Offset, w.set.Position(n.End()).Offset
	operand := w.source[from : to-2]
	other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
	w.put(n.Pos(), to-from, "func() { if zzIs(%d) { %s%s } else { %s%s } }()", w.add("INCREMENT_DECREMENT", n.TokPos), operand, other, operand, n.Tok)
}

// chooser is the added source file that selects the mutant.
const chooser = `
import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

var zzOne, _ = strconv.Atoi(os.Getenv("MUTANT"))

var zzMet = func() int {
	fd, err := syscall.Open(os.Getenv("MUTANTS_MET"), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return -1
	}
	return fd
}()

var zzSeen [1 << 15]atomic.Bool

func zzIs(id int) bool {
	if zzMet >= 0 && !zzSeen[id].Swap(true) {
		syscall.Write(zzMet, []byte(strconv.Itoa(id)+"\n"))
	}
	return id == zzOne
}

func zzLess[T cmp.Ordered](id int, a, b T) bool           { return a < b || zzIs(id) && a == b }
func zzGreater[T cmp.Ordered](id int, a, b T) bool        { return a > b || zzIs(id) && a == b }
func zzLessOrEqual[T cmp.Ordered](id int, a, b T) bool    { return a < b || !zzIs(id) && a == b }
func zzGreaterOrEqual[T cmp.Ordered](id int, a, b T) bool { return a > b || !zzIs(id) && a == b }

type zzInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}
type zzNumber interface{ zzInteger | ~float32 | ~float64 }

func zzAdd[T zzNumber](id int, a, b T) T      { if zzIs(id) { return a - b }; return a + b }
func zzSubtract[T zzNumber](id int, a, b T) T { if zzIs(id) { return a + b }; return a - b }
func zzMultiply[T zzNumber](id int, a, b T) T { if zzIs(id) { return a / b }; return a * b }
func zzDivide[T zzNumber](id int, a, b T) T   { if zzIs(id) { return a * b }; return a / b }
func zzRemain[T zzInteger](id int, a, b T) T  { if zzIs(id) { return a * b }; return a % b }
`
