package openapi

import (
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/server/openapi/document"
)

//go:embed data
var data embed.FS

func fileOf(key string) string { return "data/" + strings.ReplaceAll(key, "/", "__") + ".json.gz" }

// hasBuiltin says whether there is data under that key.
func hasBuiltin(key string) bool {
	_, err := fs.Stat(data, fileOf(key))
	return err == nil
}

// builtin returns the document of the built-in resources under that key, empty if there are
// none.
func builtin(key string) (*document.Document, error) {
	f, err := data.Open(fileOf(key))
	if errors.Is(err, fs.ErrNotExist) {
		return &document.Document{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("openapi: data of %s: %w", key, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("openapi: data of %s: %w", key, err)
	}
	return document.Parse(text)
}

// keepServed leaves in d, the document of the built-in resources of a group version, what is
// served: resources, subresources and the types of patches they take (rule H48).
func keepServed(d *document.Document, root string, served []*resource.Resource, version string) error {
	find := func(plural string) *resource.Resource {
		i := slices.IndexFunc(served, func(r *resource.Resource) bool { return r.Plural == plural && !r.Custom })
		if i < 0 {
			return nil
		}
		return served[i]
	}
	d.Keep(func(path string) bool {
		plural, sub, ok := document.Route(root, path)
		if !ok || plural == "" {
			return ok
		}
		r := find(plural)
		return r != nil && (sub == "" || r.Version(version).Subresources[sub] != nil)
	})
	return d.MediaTypes(func(path, mediaType string) bool {
		plural, _, _ := document.Route(root, path)
		r := find(plural)
		return r != nil && refuses(r.Version(version).Form, mediaType)
	})
}

// refuses says whether a media type is a patch that objects of this form do not take.
func refuses(form resource.Form, mediaType string) bool {
	return form != nil && strings.Contains(mediaType, "-patch+") && !slices.Contains(form.Patches(), mediaType)
}
