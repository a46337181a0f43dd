package crd

import (
	"fmt"
	"strings"
	"testing"
)

// What a write of a custom resource costs here: reading, checking and encoding it once.
func BenchmarkWrite(b *testing.B) {
	k := compiled(b, oneVersion(`{type: object, properties: {size: {type: integer, default: 3}, name: {type: string, maxLength: 20}}, x-kubernetes-validations: [{rule: "self.size < 100"}]}`), "v1")
	data := toJSON(b, widget(`{size: 1, name: x}`))
	for b.Loop() {
		obj, _, err := k.Form.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		k.Strategy.PrepareForCreate(b.Context(), obj)
		if errs := k.Strategy.Validate(b.Context(), obj); len(errs) > 0 {
			b.Fatal(errs)
		}
		if _, _, err := k.Codec.Encode(obj); err != nil {
			b.Fatal(err)
		}
	}
}

// What a stored definition costs at start, when none of its objects is read.
func BenchmarkCompile(b *testing.B) {
	var props []string
	for i := range 500 {
		props = append(props, fmt.Sprintf(`p%d: {type: object, description: "some text about this field", properties: {x: {type: string}}}`, i))
	}
	def := decoded(b, oneVersion("{type: object, properties: {"+strings.Join(props, ", ")+"}}"))
	data, _, err := DefinitionCodec{}.Encode(def)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := (DefinitionCodec{}).Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("kind", func(b *testing.B) {
		for b.Loop() {
			if _, err := Compile(def, "v1"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
