// Command sdkpair is a proxy made of the SDK alone: a server of the SDK passes calls
// to a client of the SDK, which starts the command in the arguments.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdkpair", Version: "1"}, nil)
	upstream, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(os.Args[1], os.Args[2:]...)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "sdkpair", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "use_tool", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct {
				Input json.RawMessage `json:"tool_input"`
			}
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return upstream.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: in.Input})
		})
	if err := server.Run(ctx, &mcp.StdioTransport{}); err != nil {
		log.Print(err)
	}
	upstream.Close()
}
