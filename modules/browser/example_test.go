package browser_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/modules/browser"
	"github.com/dynmcp/dynmcp/schema"
)

// The example runs this program again as its server.
func init() {
	if os.Getenv("EXAMPLE_SERVER") == "" {
		return
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	for _, name := range []string{"read_file", "write_file", "stat"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			FilePath string `json:"file_path"`
		}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " " + in.FilePath}}}, nil, nil
		})
	}
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
	os.Exit(0)
}

// A Go program uses servers from a config file in the format of MCP Browser, with its two
// methods.
func ExampleBrowser_Call() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config.yaml")
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	err = os.WriteFile(file, fmt.Appendf(nil, `
servers:
  my_server:
    command: [%q]
    args: ["-test.run=^$"]
    env:
      EXAMPLE_SERVER: "1"
    description: "My custom MCP server"
`, program), 0o600)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	cfg, err := schema.ReadFiles(ctx, []string{file}, schema.LoadOptions{}).Load()
	if err != nil {
		panic(err)
	}
	agg, err := aggregator.New(cfg, aggregator.Options{Version: "1"})
	if err != nil {
		panic(err)
	}
	defer agg.Close()
	servers := browser.Browser{Aggregator: agg}

	// A server with a description is started when it is first used, which is here.
	found, err := servers.Discover("$.tools[?(@.name contains 'file')].name")
	fmt.Println(string(found), err)
	result, err := servers.Call(ctx, "tools/call", []byte(`{
		"name": "mcp_call",
		"arguments": {"method": "tools/call", "params": {"name": "my-server/stat", "arguments": {"file_path": "/absolute/path/to/file.txt"}}}
	}`))
	fmt.Println(string(result), err)
	_, err = servers.Discover("$.tools[")
	fmt.Println(err)
	// Output:
	// ["my-server/read_file","my-server/write_file"] <nil>
	// {"content":[{"type":"text","text":"stat /absolute/path/to/file.txt"}]} <nil>
	// "$.tools[" is not a JSONPath query: unexpected eof at position 9. For example: $.tools[?(@.name contains 'file')].name, $.tools[0:5], $.servers[*].name
}
