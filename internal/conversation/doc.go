// Package conversation replays recorded exchanges between a client and a
// reference Kubernetes API server against another server, and says where the
// answers differ.
//
// The recordings are the YAML files of testdata; the README beside them is
// their format, and this package follows it to the letter. What a recording
// expects is never written by any code here: a test reads the sources and says
// so, and another pins the sums of the files.
//
// # One conversation
//
// [Load] reads the recordings, [Conversation.Run] replays one:
//
//	all, err := conversation.Load(conversation.Recordings())
//	result := all[0].Run(ctx, &conversation.Client{BaseURL: url, Token: token}, "k3x9w2ab")
//	fmt.Println(result)
//
// The token stands for ${unique}, so conversations with different tokens may
// run side by side on one server. Run removes what the conversation made, as
// far as the server lets it.
//
// # From an answer to a comparison
//
// Every answer goes the same way:
//
//	raw ▶ capture ▶ mark ▶ select ▶ sort ▶ shape ▶ number ▶ compare
//
// Marking says what each resourceVersion is (an object's, a list's, a table's,
// a bookmark's) while the whole answer is still there to tell. Selecting keeps
// what the check asks for. Numbering comes after it, because parts that are
// left out take no part in it.
//
// # All of them
//
// [RunAll] is a test of all conversations with the list of those that do not
// pass yet, which may only shrink. To see why one fails:
//
//	go test ./internal/conversation -run 'TestConversations/create/creating_a_configmap' -v
package conversation
