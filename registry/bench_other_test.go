//go:build !unix

package registry

import "time"

func cpu() time.Duration { return 0 }
