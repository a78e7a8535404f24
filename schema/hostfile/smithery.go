package hostfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Smithery starts a server by what a function in JavaScript returns for the settings of its user.
// Most return an object of texts and settings: they are read, and nothing is run.

// maxFunction limits the length of a function: the parser of JavaScript recurses.
const maxFunction = 64 << 10

// smithery returns the entry of a file of Smithery, which has a path in messages.
func (f *File) smithery(r Report, path string) *syntax.Node {
	start := f.root.Get("startCommand")
	function := start.Get("commandFunction")
	switch {
	case start == nil:
		return failed(r, f.root.At, path, "Smithery builds and starts this program: nothing here says how", "read its documentation for the command")
	case function != nil && len(function.Scalar) > maxFunction:
		return failed(r, function.At, path, "this program is too long to be read", "read what it returns, and write that as a server")
	case function == nil:
		return failed(r, start.At, path, "Smithery starts this as a server at an address of its own", "give the url of the server")
	}
	c := &commandFunction{File: f, at: function.At, values: map[string]*syntax.Node{}, report: r, path: path}
	n, err := c.read(function.Scalar)
	if err != nil {
		return failed(r, function.At, path, "this program is run by Smithery only: "+err.Error(), "read what it returns, and write that as a server")
	}
	return n
}

// failed says what is wrong with an entry, and returns one that is off for it.
func failed(r Report, at syntax.Pos, path, what, hint string) *syntax.Node {
	r.Fail(at, path, what, hint)
	return object(at, syntax.Member{Key: "command", Value: &syntax.Node{Kind: syntax.Text, At: at, Unresolved: true}})
}

// A commandFunction is evaluated for settings that are not known: a value is a node, with a reference
// ${input:NAME} for a setting, or nil for undefined.
type commandFunction struct {
	*File
	at     syntax.Pos
	report Report
	path   string
	config string // the name of the settings
	values map[string]*syntax.Node
	// unsure is set while a branch is read that is taken if a setting without a default is there.
	unsure bool
}

// A returned ends the statements of a function; the value is in returned.
type returned struct{ value *syntax.Node }

func (returned) Error() string { return "it returned" }

func (c *commandFunction) read(source string) (*syntax.Node, error) {
	program, err := parser.ParseFile(nil, "", "("+strings.TrimRight(strings.TrimSpace(source), ";")+"\n)", 0)
	if err != nil || len(program.Body) != 1 {
		return nil, errors.New("it is not a function of JavaScript")
	}
	statement, _ := program.Body[0].(*ast.ExpressionStatement)
	if statement == nil {
		return nil, errors.New("it is not a function of JavaScript")
	}
	var value *syntax.Node
	switch function := statement.Expression.(type) {
	case *ast.ArrowFunctionLiteral:
		if err := c.parameter(function.ParameterList); err != nil {
			return nil, err
		}
		switch body := function.Body.(type) {
		case *ast.ExpressionBody:
			value, err = c.value(body.Expression)
		case *ast.BlockStatement:
			value, err = c.call(body)
		}
	case *ast.FunctionLiteral:
		if err := c.parameter(function.ParameterList); err != nil {
			return nil, err
		}
		value, err = c.call(function.Body)
	default:
		return nil, errors.New("it is not a function")
	}
	if err == nil && (value == nil || value.Kind != syntax.Object || !value.Has("command")) {
		err = errors.New("it returns no command")
	}
	return value, err
}

func (c *commandFunction) parameter(list *ast.ParameterList) error {
	if len(list.List) == 0 {
		return nil
	}
	return c.bind(list.List[0].Target, nil)
}

// bind names a value, or its members; nil is the settings.
func (c *commandFunction) bind(target ast.BindingTarget, value *syntax.Node) error {
	switch t := target.(type) {
	case *ast.Identifier:
		if value == nil {
			c.config = t.Name.String()
		} else {
			c.values[t.Name.String()] = value
		}
		return nil
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			short, ok := p.(*ast.PropertyShort)
			if !ok || value != nil {
				return errors.New("it takes its settings apart")
			}
			name := short.Name.Name.String()
			c.values[name] = c.setting(name)
			if short.Initializer != nil {
				v, err := c.value(short.Initializer)
				if err != nil {
					return err
				}
				c.setDefault(name, v)
			}
		}
		return nil
	}
	return errors.New("it takes its settings apart")
}

// call returns what statements return.
func (c *commandFunction) call(body *ast.BlockStatement) (*syntax.Node, error) {
	err := c.run(body.List)
	var r returned
	if errors.As(err, &r) {
		return r.value, nil
	}
	if err == nil {
		err = errors.New("it returns nothing")
	}
	return nil, err
}

func (c *commandFunction) run(statements []ast.Statement) error {
	for _, s := range statements {
		if err := c.statement(s); err != nil {
			return err
		}
	}
	return nil
}

func (c *commandFunction) statement(s ast.Statement) error {
	switch s := s.(type) {
	case *ast.EmptyStatement:
		return nil
	case *ast.BlockStatement:
		return c.run(s.List)
	case *ast.VariableStatement:
		return c.declare(s.List)
	case *ast.LexicalDeclaration:
		return c.declare(s.List)
	case *ast.ReturnStatement:
		if c.unsure {
			return errors.New("what it returns depends on a setting")
		}
		value, err := c.value(s.Argument)
		if err != nil {
			return err
		}
		return returned{value}
	case *ast.IfStatement:
		return c.branch(s)
	case *ast.ExpressionStatement:
		switch e := s.Expression.(type) {
		case *ast.AssignExpression:
			return c.assign(e)
		case *ast.CallExpression:
			return c.push(e)
		}
	}
	return fmt.Errorf("it has a statement that is not read, %s", kindOf(s))
}

func kindOf(v any) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", v), "*ast."), "Statement")
}

func (c *commandFunction) declare(list []*ast.Binding) error {
	for _, b := range list {
		if id, ok := b.Initializer.(*ast.Identifier); ok && id.Name.String() == c.config {
			if _, apart := b.Target.(*ast.ObjectPattern); apart {
				if err := c.bind(b.Target, nil); err != nil {
					return err
				}
				continue
			}
		}
		value, err := c.value(b.Initializer)
		if err != nil {
			return err
		}
		if value == nil {
			value = &syntax.Node{Kind: syntax.Null, At: c.at}
		}
		if err := c.bind(b.Target, value); err != nil {
			return err
		}
	}
	return nil
}

func (c *commandFunction) branch(s *ast.IfStatement) error {
	yes, sure, err := c.holds(s.Test)
	switch {
	case err != nil:
		return err
	case sure && yes:
		return c.statement(s.Consequent)
	case sure && s.Alternate != nil:
		return c.statement(s.Alternate)
	case sure:
		return nil
	}
	for _, part := range []struct {
		statement ast.Statement
		runs      bool // for a user who leaves the setting out
	}{{s.Consequent, yes}, {s.Alternate, !yes}} {
		if part.statement == nil {
			continue
		}
		was := c.unsure
		c.unsure = was || !part.runs
		err := c.statement(part.statement)
		if c.unsure = was; err != nil {
			return err
		}
	}
	return nil
}

// assign sets a member of an object, such as a variable. If that depends on a setting without a
// default, it is set if its value is that setting: it is empty without it.
func (c *commandFunction) assign(e *ast.AssignExpression) error {
	var key string
	var in ast.Expression
	switch left := e.Left.(type) {
	case *ast.DotExpression:
		key, in = left.Identifier.Name.String(), left.Left
	case *ast.BracketExpression:
		literal, ok := left.Member.(*ast.StringLiteral)
		if !ok {
			return errors.New("it computes a name")
		}
		key, in = literal.Value.String(), left.Left
	default:
		return errors.New("it changes a variable")
	}
	target, err := c.value(in)
	if err != nil || target == nil || target.Kind != syntax.Object || e.Operator != token.ASSIGN {
		return errors.Join(err, errors.New("it changes something that is no object"))
	}
	value, err := c.value(e.Right)
	if err != nil || value == nil {
		return err
	}
	if c.unsure && !refers(value) {
		c.left(key)
		return nil
	}
	set(target, key, value)
	return nil
}

// push adds words to a list.
func (c *commandFunction) push(e *ast.CallExpression) error {
	dot, ok := e.Callee.(*ast.DotExpression)
	if !ok || dot.Identifier.Name.String() != "push" {
		return errors.New("it calls a function")
	}
	list, err := c.value(dot.Left)
	if err != nil || list == nil || list.Kind != syntax.List {
		return errors.Join(err, errors.New("it calls a function"))
	}
	items, err := c.items(e.ArgumentList)
	if err != nil {
		return err
	}
	if c.unsure {
		c.left("args")
		return nil
	}
	list.Items = append(list.Items, items...)
	return nil
}

// left says that what depends on a setting is left out.
func (c *commandFunction) left(what string) {
	c.report.Warn(c.at, c.path, "what it adds to "+what+" if a setting is there is left out", "")
}

func refers(n *syntax.Node) bool {
	return strings.Contains(n.Scalar, "${input:") || slices.ContainsFunc(n.Members, func(m syntax.Member) bool { return refers(m.Value) })
}

func set(n *syntax.Node, key string, value *syntax.Node) {
	n.Members = slices.DeleteFunc(n.Members, func(m syntax.Member) bool { return m.Key == key })
	n.Members = append(n.Members, syntax.Member{Key: key, At: value.At, Value: value})
}

var settingOnly = lazyregexp.New(`^\$\{input:(\w+)\}$`)

// settings returns what the file says of the settings.
func (f *File) settings() *syntax.Node {
	return below(f.root, []string{"startCommand", "configSchema"})
}

func (c *commandFunction) setting(name string) *syntax.Node {
	return &syntax.Node{Kind: syntax.Text, At: c.at, Scalar: "${input:" + name + "}"}
}

// setDefault sets the default of a setting that has none.
func (c *commandFunction) setDefault(name string, value *syntax.Node) {
	if c.defaults == nil {
		c.defaults = map[string]*syntax.Node{}
	}
	if value != nil && c.ask(name).Get("default") == nil {
		c.defaults[name] = value
	}
}

// isRequired reports whether the user of Smithery has to give a setting.
func (f *File) isRequired(name string) bool {
	return slices.ContainsFunc(f.settings().ItemsOf("required"), func(n *syntax.Node) bool { return n.Scalar == name })
}
