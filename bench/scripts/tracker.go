package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// prose returns a text of so many words. A number always gives the same text.
func prose(seed, words int) string {
	vocabulary := strings.Fields(`the a server client request answer fails slow timeout crash memory when after starts config file
		user reports version update error log shows should never again works locally branch merge release test TODO deadlock leak`)
	random := rand.New(rand.NewPCG(uint64(seed), 7))
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(" \n"[min(1, i%15/14)])
		}
		b.WriteString(vocabulary[random.IntN(len(vocabulary))])
	}
	return b.String()
}

// An issue is an entry of the tracker.
type issue struct {
	Number int      `json:"number"`
	Title  string   `json:"title"`
	State  string   `json:"state"`
	Labels []string `json:"labels"`
	Author string   `json:"author"`
	Body   string   `json:"body,omitempty"`
}

type comment struct {
	Author string `json:"author"`
	Body   string `json:"body"`
}

var authors = []string{"ann", "ben", "cleo", "dan"}

const issues = 30

func issueOf(n int) issue {
	i := issue{Number: n, Title: prose(n+100, 6), State: "open", Labels: []string{}, Author: authors[n*7%len(authors)], Body: prose(n, 160)}
	if n%3 == 0 {
		i.Labels = []string{"bug"}
	}
	return i
}

type numbered struct {
	Number int `json:"number"`
}

// serveTracker runs a server of issues on stdin and stdout.
func serveTracker() error {
	s := mcp.NewServer(&mcp.Implementation{Name: "tracker", Version: "1"}, nil)
	var mu sync.Mutex
	labels := map[int][]string{}
	type page struct {
		Issues []issue `json:"issues"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "list_issues", Description: "Lists the open issues."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, page, error) {
		var p page
		for n := range issues {
			i := issueOf(n + 1)
			i.Body = ""
			p.Issues = append(p.Issues, i)
		}
		return nil, p, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "get_issue", Description: "Reads an issue."}, func(_ context.Context, _ *mcp.CallToolRequest, in numbered) (*mcp.CallToolResult, issue, error) {
		if in.Number < 1 || in.Number > issues {
			return nil, issue{}, fmt.Errorf("there is no issue %d", in.Number)
		}
		i := issueOf(in.Number)
		mu.Lock()
		defer mu.Unlock()
		i.Labels = append(i.Labels, labels[in.Number]...)
		return nil, i, nil
	})
	type comments struct {
		Comments []comment `json:"comments"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "list_comments", Description: "Lists the comments of an issue."}, func(_ context.Context, _ *mcp.CallToolRequest, in numbered) (*mcp.CallToolResult, comments, error) {
		var c comments
		for k := range 5 {
			c.Comments = append(c.Comments, comment{authors[(in.Number*in.Number+k*k)%len(authors)], prose(in.Number*10+k, 50)})
		}
		return nil, c, nil
	})
	type label struct {
		Number int    `json:"number"`
		Label  string `json:"label"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add_label", Description: "Adds a label to an issue."}, func(_ context.Context, _ *mcp.CallToolRequest, in label) (*mcp.CallToolResult, issue, error) {
		mu.Lock()
		defer mu.Unlock()
		labels[in.Number] = append(labels[in.Number], in.Label)
		i := issueOf(in.Number)
		i.Labels = append(i.Labels, labels[in.Number]...)
		return nil, i, nil
	})
	return s.Run(context.Background(), &mcp.StdioTransport{})
}
