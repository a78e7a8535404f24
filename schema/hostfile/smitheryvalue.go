package hostfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// holds reports whether a condition is true. It is not sure if a setting decides that has no default
// and may be left out; yes is for a user who leaves it out.
func (c *commandFunction) holds(e ast.Expression) (yes, sure bool, err error) {
	switch e := e.(type) {
	case *ast.UnaryExpression:
		if e.Operator == token.NOT {
			yes, sure, err = c.holds(e.Operand)
			return !yes, sure, err
		}
	case *ast.BinaryExpression:
		switch e.Operator {
		case token.LOGICAL_AND, token.LOGICAL_OR:
			a, sureA, err := c.holds(e.Left)
			b, sureB, errB := c.holds(e.Right)
			or := e.Operator == token.LOGICAL_OR
			switch {
			case sureA && a == or || sureB && b == or:
				return or, true, errors.Join(err, errB)
			}
			return !or, sureA && sureB, errors.Join(err, errB)
		case token.EQUAL, token.STRICT_EQUAL, token.NOT_EQUAL, token.STRICT_NOT_EQUAL:
			a, err := c.value(e.Left)
			b, errB := c.value(e.Right)
			a, sureA := c.usual(a)
			b, sureB := c.usual(b)
			same := a == nil && b == nil || a != nil && b != nil && a.Kind == b.Kind && a.Scalar == b.Scalar
			equal := e.Operator == token.EQUAL || e.Operator == token.STRICT_EQUAL
			return same == equal, sureA && sureB, errors.Join(err, errB)
		}
	}
	v, err := c.value(e)
	if err != nil {
		return false, false, err
	}
	v, sure = c.usual(v)
	return isTrue(v), sure, nil
}

// usual returns the value that a setting has unless its user says otherwise. It is not sure without one.
func (c *commandFunction) usual(v *syntax.Node) (usual *syntax.Node, sure bool) {
	if v == nil {
		return nil, true
	}
	m := settingOnly().FindStringSubmatch(v.Scalar)
	if m == nil {
		return v, true
	}
	if d := c.defaultOf(m[1]); d != nil {
		return d, true
	}
	if c.isRequired(m[1]) {
		return v, true
	}
	return nil, false
}

func isTrue(v *syntax.Node) bool {
	if v == nil || v.Kind == syntax.Null {
		return false
	}
	return v.Kind == syntax.List || v.Kind == syntax.Object || v.Scalar != "" && (v.Kind == syntax.Text || v.Scalar != "false" && v.Scalar != "0")
}

// value returns the value of an expression, nil if it is undefined.
func (c *commandFunction) value(e ast.Expression) (*syntax.Node, error) {
	at := func(kind syntax.Kind, s string) (*syntax.Node, error) {
		return &syntax.Node{Kind: kind, At: c.at, Scalar: s}, nil
	}
	switch e := e.(type) {
	case nil, *ast.NullLiteral:
		return nil, nil
	case *ast.StringLiteral:
		return at(syntax.Text, e.Value.String())
	case *ast.NumberLiteral:
		return at(syntax.Number, e.Literal)
	case *ast.BooleanLiteral:
		return at(syntax.Boolean, e.Literal)
	case *ast.TemplateLiteral:
		return c.template(e)
	case *ast.OptionalChain:
		return c.value(e.Expression)
	case *ast.Optional:
		return c.value(e.Expression)
	case *ast.Identifier:
		return c.named(e.Name.String())
	case *ast.DotExpression:
		return c.member(e.Left, e.Identifier.Name.String())
	case *ast.BracketExpression:
		if key, ok := e.Member.(*ast.StringLiteral); ok {
			return c.member(e.Left, key.Value.String())
		}
	case *ast.ArrayLiteral:
		items, err := c.items(e.Value)
		return &syntax.Node{Kind: syntax.List, At: c.at, Items: items}, err
	case *ast.ObjectLiteral:
		return c.object(e)
	case *ast.ConditionalExpression:
		return c.choose(e.Test, e.Consequent, e.Alternate)
	case *ast.BinaryExpression:
		return c.binary(e)
	case *ast.CallExpression:
		return c.conversion(e)
	}
	return nil, fmt.Errorf("it has an expression that is not read, %s", strings.TrimSuffix(kindOf(e), "Expression"))
}

// named returns the value of a variable; that of the settings is an object of all of them.
func (c *commandFunction) named(name string) (*syntax.Node, error) {
	if v, ok := c.values[name]; ok {
		if v.Kind == syntax.Null {
			return nil, nil
		}
		return v, nil
	}
	switch name {
	case "undefined":
		return nil, nil
	case c.config:
		all := &syntax.Node{Kind: syntax.Object, At: c.at}
		for _, m := range c.settings().MembersOf("properties") {
			set(all, m.Key, c.setting(m.Key))
		}
		return all, nil
	}
	return nil, fmt.Errorf("it uses %s", name)
}

// member returns a setting, a variable of the environment, or a member of an object.
func (c *commandFunction) member(in ast.Expression, key string) (*syntax.Node, error) {
	for {
		optional, ok := in.(*ast.Optional)
		if !ok {
			break
		}
		in = optional.Expression
	}
	if id, ok := in.(*ast.Identifier); ok {
		switch name := id.Name.String(); {
		case name == c.config && c.values[name] == nil:
			return c.setting(key), nil
		case name == "process" && key == "env": // it is inherited
			return &syntax.Node{Kind: syntax.Object, At: c.at}, nil
		}
	}
	if dot, ok := in.(*ast.DotExpression); ok && dot.Identifier.Name == "env" {
		if id, ok := dot.Left.(*ast.Identifier); ok && id.Name == "process" {
			return &syntax.Node{Kind: syntax.Text, At: c.at, Scalar: "${" + key + ":-}"}, nil
		}
	}
	v, err := c.value(in)
	if err != nil || v == nil || v.Kind != syntax.Object {
		return nil, errors.Join(err, fmt.Errorf("it uses %s of something", key))
	}
	return v.Get(key), nil
}

func (c *commandFunction) items(list []ast.Expression) (items []*syntax.Node, err error) {
	for _, e := range list {
		spread, apart := e.(*ast.SpreadElement)
		if apart {
			e = spread.Expression
		}
		v, err := c.value(e)
		switch {
		case err != nil:
			return nil, err
		case v == nil, apart && !isTrue(v):
		case apart && v.Kind == syntax.List:
			items = append(items, v.Items...)
		case apart:
			return nil, errors.New("it adds the items of something that is no list")
		default:
			items = append(items, v)
		}
	}
	return items, nil
}

func (c *commandFunction) object(e *ast.ObjectLiteral) (*syntax.Node, error) {
	n := &syntax.Node{Kind: syntax.Object, At: c.at}
	for _, p := range e.Value {
		var v *syntax.Node
		var err error
		var key string
		switch p := p.(type) {
		case *ast.PropertyShort:
			key = p.Name.Name.String()
			v, err = c.named(key)
		case *ast.PropertyKeyed:
			literal, ok := p.Key.(*ast.StringLiteral)
			if !ok || p.Computed {
				return nil, errors.New("it computes a name")
			}
			key = literal.Value.String()
			v, err = c.value(p.Value)
		case *ast.SpreadElement:
			v, err = c.value(p.Expression)
			if err == nil && v != nil {
				for _, m := range v.Members {
					set(n, m.Key, m.Value)
				}
			}
			v = nil
		}
		if err != nil {
			return nil, err
		}
		if v != nil {
			set(n, key, v)
		}
	}
	return n, nil
}

// choose returns one of two values. If the setting that decides may be left out, the first is taken, too,
// if it has the setting, which is empty then.
func (c *commandFunction) choose(test, then, otherwise ast.Expression) (*syntax.Node, error) {
	yes, sure, err := c.holds(test)
	if err != nil {
		return nil, err
	}
	if sure && !yes {
		return c.value(otherwise)
	}
	v, err := c.value(then)
	if sure || yes || err != nil || v != nil && v.Kind != syntax.List && refers(v) {
		return v, err
	}
	if v != nil && isTrue(v) && v.Kind != syntax.Object {
		c.left("args")
	}
	return c.value(otherwise)
}

func (c *commandFunction) binary(e *ast.BinaryExpression) (*syntax.Node, error) {
	switch e.Operator {
	case token.LOGICAL_AND:
		return c.choose(e.Left, e.Right, nil)
	case token.LOGICAL_OR, token.COALESCE:
		v, err := c.value(e.Left)
		if err != nil {
			return nil, err
		}
		other, err := c.value(e.Right)
		if err != nil {
			return nil, err
		}
		usual, sure := c.usual(v)
		if sure && (isTrue(usual) || e.Operator == token.COALESCE && usual != nil) {
			return v, nil
		}
		if m := settingOnly().FindStringSubmatch(scalar(v)); m != nil && !sure && other != nil && other.Kind != syntax.List && other.Kind != syntax.Object {
			c.setDefault(m[1], other)
			return v, nil
		}
		if sure {
			return other, nil
		}
		return v, nil
	case token.PLUS:
		a, err := c.value(e.Left)
		b, errB := c.value(e.Right)
		if err = errors.Join(err, errB); err != nil || a == nil || b == nil || a.Kind != syntax.Text && b.Kind != syntax.Text {
			return nil, errors.Join(err, errors.New("it calculates"))
		}
		return &syntax.Node{Kind: syntax.Text, At: c.at, Scalar: a.Scalar + b.Scalar}, nil
	}
	return nil, errors.New("it calculates")
}

func (c *commandFunction) template(e *ast.TemplateLiteral) (*syntax.Node, error) {
	var b strings.Builder
	for i, element := range e.Elements {
		b.WriteString(element.Parsed.String())
		if i < len(e.Expressions) {
			v, err := c.value(e.Expressions[i])
			if err != nil {
				return nil, err
			}
			b.WriteString(scalar(v))
		}
	}
	return &syntax.Node{Kind: syntax.Text, At: c.at, Scalar: b.String()}, nil
}

// conversion returns the value that is converted to a text: a setting is one.
func (c *commandFunction) conversion(e *ast.CallExpression) (*syntax.Node, error) {
	var of ast.Expression
	switch callee := e.Callee.(type) {
	case *ast.Identifier:
		if name := callee.Name.String(); (name == "String" || name == "Number") && len(e.ArgumentList) == 1 {
			of = e.ArgumentList[0]
		}
	case *ast.DotExpression:
		if name := callee.Identifier.Name.String(); name == "toString" || name == "trim" {
			of = callee.Left
		}
	}
	if of == nil {
		return nil, errors.New("it calls a function")
	}
	v, err := c.value(of)
	if err != nil || v == nil {
		return v, err
	}
	return asText(v), nil
}
