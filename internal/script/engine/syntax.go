package engine

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// fileName is that of a script in the stacks of the runtime; positions after placed are
// those of the script already.
const (
	fileName = "script.js"
	placed   = "script"
)

// mustCompile compiles a program of ours when it is first used.
func mustCompile(source string) func() *goja.Program {
	return sync.OnceValue(func() *goja.Program { return goja.MustCompile("dynmcp.js", source, false) })
}

// What stands around a script. A script that is one expression returns its value, and one that
// is a function is called.
const (
	body       = "(async()=>{"
	expression = "(async()=>{return("
)

// compile compiles a script.
func (s *script) compile(source string) (*goja.Program, *Failure) {
	tree, failure := s.parse(body, source, "\n})")
	if failure != nil {
		return nil, failure
	}
	if only := onlyExpression(tree); only != nil {
		source = strings.TrimRight(source, "; \t\r\n")
		end := "\n)})"
		switch only.(type) {
		case *ast.ArrowFunctionLiteral, *ast.FunctionLiteral:
			end = "\n)()})"
		}
		if again, failure := s.parse(expression, source, end); failure == nil {
			tree = again
		} else {
			s.offset = len(body)
		}
	}
	markThrows(reflect.ValueOf(tree), map[any]bool{})
	program, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, s.syntaxError(err, source)
	}
	return program, nil
}

func (s *script) parse(before, source, after string) (*ast.Program, *Failure) {
	s.offset = len(before)
	tree, err := parser.ParseFile(nil, fileName, before+source+after, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, s.syntaxError(err, source)
	}
	if function(tree) == nil {
		return nil, &Failure{Message: "SyntaxError: a } too many"}
	}
	return tree, nil
}

// function returns what the script is the body of, nil if it does not end where the script
// does.
func function(tree *ast.Program) *ast.BlockStatement {
	if len(tree.Body) != 1 {
		return nil
	}
	if statement, ok := tree.Body[0].(*ast.ExpressionStatement); ok {
		if arrow, ok := statement.Expression.(*ast.ArrowFunctionLiteral); ok {
			block, _ := arrow.Body.(*ast.BlockStatement)
			return block
		}
	}
	return nil
}

// onlyExpression returns the expression that a script is, or the function.
func onlyExpression(tree *ast.Program) ast.Expression {
	list := function(tree).List
	if len(list) != 1 {
		return nil
	}
	switch statement := list[0].(type) {
	case *ast.ExpressionStatement:
		return statement.Expression
	case *ast.FunctionDeclaration:
		return statement.Function
	}
	return nil
}

// thrower is a function of ours, which no script can name: it returns its argument, and
// notes where that is thrown. Only an Error knows it otherwise.
const thrower = "%thrower"

// markThrows puts a call of thrower into each throw statement of a tree.
func markThrows(node reflect.Value, seen map[any]bool) {
	switch node.Kind() {
	case reflect.Interface:
		markThrows(node.Elem(), seen)
	case reflect.Slice:
		for i := range node.Len() {
			markThrows(node.Index(i), seen)
		}
	case reflect.Struct:
		for i := range node.NumField() {
			if node.Type().Field(i).IsExported() {
				markThrows(node.Field(i), seen)
			}
		}
	case reflect.Pointer:
		if node.IsNil() || seen[node.Interface()] {
			return
		}
		seen[node.Interface()] = true
		switch x := node.Interface().(type) {
		case *file.File:
			return
		case *ast.ThrowStatement:
			markThrows(reflect.ValueOf(x.Argument), seen)
			x.Argument = &ast.CallExpression{Callee: &ast.Identifier{Name: thrower, Idx: x.Throw}, LeftParenthesis: x.Throw,
				ArgumentList: []ast.Expression{x.Argument}, RightParenthesis: x.Throw}
			return
		}
		markThrows(node.Elem(), seen)
	}
}

// syntaxError says what is wrong with a script, and what to write instead.
func (s *script) syntaxError(err error, source string) *Failure {
	f := &Failure{Message: err.Error()}
	if list, ok := errors.AsType[parser.ErrorList](err); ok && len(list) > 0 {
		f.Message = list[0].Message
		f.Line, f.Column = s.place(list[0].Position.Line, list[0].Position.Column)
	} else if c, ok := errors.AsType[*goja.CompilerSyntaxError](err); ok {
		f.Message = c.Message
		if c.File != nil {
			at := c.File.Position(c.Offset)
			f.Line, f.Column = s.place(at.Line, at.Column)
		}
	}
	if advice := advise(source, f.Line, f.Column); advice != "" {
		f.Message = advice
	}
	f.Message = "SyntaxError: " + strings.TrimPrefix(f.Message, "SyntaxError: ")
	return f
}

// place returns where in the script a position is.
func (s *script) place(line, column int) (int, int) {
	if line == 1 {
		column -= s.offset
	}
	return line, max(column, 1)
}

var frame = lazyregexp.New(`\b(script|script\.js):(\d+):(\d+)`)

// position returns where the script was, by the text of a stack: 0 if that does not say.
func (s *script) position(stack string) (line, column int) {
	m := frame().FindStringSubmatch(stack)
	if m == nil {
		return 0, 0
	}
	line, _ = strconv.Atoi(m[2])
	column, _ = strconv.Atoi(m[3])
	if m[1] == fileName {
		line, column = s.place(line, column)
	}
	return line, column
}

// at is a failure in the innermost function of a stack that is of the script.
func (s *script) at(stack []goja.StackFrame, message string) *Failure {
	f := &Failure{Message: message}
	for _, frame := range stack {
		if frame.SrcName() == fileName {
			at := frame.Position()
			f.Line, f.Column = s.place(at.Line, at.Column)
			break
		}
	}
	return f
}
