package engine

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// fileName names a script in stacks of the runtime, whose positions include the code around it.
// placed names it in stacks whose positions are already those of the script.
const (
	fileName = "script.js"
	placed   = "script"
)

// The code around a script.
const before, after = "(async()=>{", "\n})"

// compile compiles a script.
func compile(source string) (*goja.Program, *Failure) {
	if strings.HasPrefix(source, "#!") {
		source = "//" + source[2:]
	}
	tree, err := parser.ParseFile(nil, fileName, before+source+after, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxError(err, source)
	}
	body := function(tree)
	if body == nil {
		return nil, &Failure{Message: "SyntaxError: a } too many"}
	}
	returnLast(body)
	(&rewriter{seen: map[any]bool{}}).rewrite(reflect.ValueOf(tree))
	program, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, syntaxError(err, source)
	}
	return program, nil
}

// function returns the body of the function around the script, nil if it does not end where the
// script does.
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

// returnLast makes a script return its last statement if that is an expression, such as main(), and
// call it if it is a function.
func returnLast(body *ast.BlockStatement) {
	if len(body.List) == 0 {
		return
	}
	last := &body.List[len(body.List)-1]
	var value ast.Expression
	switch statement := (*last).(type) {
	case *ast.ExpressionStatement:
		value = statement.Expression
	case *ast.FunctionDeclaration:
		if len(body.List) > 1 {
			return
		}
		value = statement.Function
	default:
		return
	}
	switch value.(type) {
	case *ast.ArrowFunctionLiteral, *ast.FunctionLiteral:
		value = &ast.CallExpression{Callee: value, LeftParenthesis: value.Idx1(), RightParenthesis: value.Idx1()}
	}
	*last = &ast.ReturnStatement{Return: value.Idx0(), Argument: value}
}

// thrower is an internal function, which no script can name: it returns its argument, and records
// the position of the throw. Otherwise only an Error has one.
const thrower = "%thrower"

// A rewriter adds a call of thrower to each throw statement of a tree, and translates regular
// expressions.
type rewriter struct{ seen map[any]bool }

func (r *rewriter) rewrite(node reflect.Value) {
	switch node.Kind() {
	case reflect.Interface:
		r.rewrite(node.Elem())
	case reflect.Slice:
		for i := range node.Len() {
			r.rewrite(node.Index(i))
		}
	case reflect.Struct:
		for i := range node.NumField() {
			if node.Type().Field(i).IsExported() {
				r.rewrite(node.Field(i))
			}
		}
	case reflect.Pointer:
		if node.IsNil() || r.seen[node.Interface()] {
			return
		}
		r.seen[node.Interface()] = true
		switch x := node.Interface().(type) {
		case *file.File:
			return
		case *ast.RegExpLiteral:
			x.Pattern = property(x.Pattern, x.Flags)
		case *ast.ThrowStatement:
			r.rewrite(reflect.ValueOf(x.Argument))
			x.Argument = &ast.CallExpression{Callee: &ast.Identifier{Name: thrower, Idx: x.Throw}, LeftParenthesis: x.Throw,
				ArgumentList: []ast.Expression{x.Argument}, RightParenthesis: x.Throw}
			return
		}
		r.rewrite(node.Elem())
	}
}

var propertyEscape = lazyregexp.New(`(\\[pP]\{)(?:(?:Script|sc|Script_Extensions|scx|General_Category|gc)=)?`)

// property translates \p{…} in a regular expression: goja takes it for a p unless the expression
// has a lookahead, and does not know "Script=".
func property(pattern, flags string) string {
	if !strings.Contains(flags, "u") || !propertyEscape().MatchString(pattern) {
		return pattern
	}
	return "(?=)" + propertyEscape().ReplaceAllString(pattern, "$1")
}

// syntaxError describes an error in a script, and what to write instead.
func syntaxError(err error, source string) *Failure {
	f := &Failure{Message: err.Error()}
	if list, ok := errors.AsType[parser.ErrorList](err); ok && len(list) > 0 {
		f.Message = list[0].Message
		f.Line, f.Column = place(list[0].Position.Line, list[0].Position.Column)
	} else if c, ok := errors.AsType[*goja.CompilerSyntaxError](err); ok {
		f.Message = c.Message
		if c.File != nil {
			at := c.File.Position(c.Offset)
			f.Line, f.Column = place(at.Line, at.Column)
		}
	}
	if advice := advise(source, f.Line, f.Column); advice != "" {
		f.Message = advice
	} else if lines := strings.Count(source, "\n") + 1; f.Line > lines {
		f.Message, f.Line, f.Column = "the script ends too early: a bracket or an operand is missing", 0, 0
	}
	f.Message = "SyntaxError: " + strings.TrimPrefix(f.Message, "SyntaxError: ")
	return f
}

// place converts a position to a position in the script.
func place(line, column int) (int, int) {
	if line == 1 {
		column -= len(before)
	}
	return line, max(column, 1)
}

var frame = lazyregexp.New(`\b(script|script\.js):(\d+):(\d+)`)

// position returns the position in the script from the text of a stack, 0 if there is none.
func position(stack string) (line, column int) {
	m := frame().FindStringSubmatch(stack)
	if m == nil {
		return 0, 0
	}
	line, _ = strconv.Atoi(m[2])
	column, _ = strconv.Atoi(m[3])
	if m[1] == fileName {
		line, column = place(line, column)
	}
	return line, column
}

// at returns a failure at the innermost position of the script in a stack.
func at(stack []goja.StackFrame, message string) *Failure {
	f := &Failure{Message: message}
	for _, frame := range stack {
		if frame.SrcName() == fileName {
			at := frame.Position()
			f.Line, f.Column = place(at.Line, at.Column)
			break
		}
	}
	return f
}
