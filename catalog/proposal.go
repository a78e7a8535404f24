package catalog

import (
	"github.com/dynmcp/dynmcp/catalog/describe"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Proposal returns a description of a listed server, made from the topics of its tools and
// the texts of the server and its package. It is "" if the server is not listed or nothing is
// known of it.
func (v Texts) Proposal(server, packaged string) string {
	p := v.part(server)
	if p == nil || p.index == nil {
		return ""
	}
	return p.proposal(packaged)
}

func (p *serverView) proposal(packaged string) string {
	s := describe.Subject{Name: p.server.Name, Says: append(p.ownTexts(), packaged)}
	for _, t := range p.tools {
		s.Tools = append(s.Tools, describe.Tool{Name: t.Leaf, Description: t.Description})
	}
	return describe.Text(s)
}

// ownTexts returns the texts of the server about itself.
func (p *serverView) ownTexts() []string {
	texts := []string{p.info.Instructions}
	for _, member := range []string{"description", "title"} {
		text, _ := wire.Text(wire.Get(p.info.Info, member))
		texts = append(texts, text)
	}
	return texts
}
