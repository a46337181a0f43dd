package pawl

import "github.com/pawl-dev/pawl/internal/resource"

// CatalogueOf is all that a server serves, whatever discovery says of it.
func CatalogueOf(s *Server) *resource.Catalogue { return s.parts.catalogue.Catalogue() }
