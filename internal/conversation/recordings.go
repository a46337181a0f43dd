package conversation

import (
	"embed"
	"io/fs"
)

//go:embed testdata/*.yaml
var recordings embed.FS

// Recordings returns the recorded conversations, one YAML file per topic.
func Recordings() fs.FS {
	sub, err := fs.Sub(recordings, "testdata")
	if err != nil {
		panic("conversation: testdata is not embedded: " + err.Error())
	}
	return sub
}
