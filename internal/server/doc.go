// Package server speaks the Kubernetes API over HTTP.
//
// # One request
//
// A request is read once into a call: who asks, which resource of the catalogue is meant, in
// which version, what is to be done, and how the answer is to look. The catalogue is taken
// once, so that a request that began on one definition ends on it. The call is authorized,
// and handed to the one function that serves its verb; that function calls the resource's
// store and answers with what it returns.
//
// # Answers
//
// What is stored in the form that is asked for is sent as stored: nothing is decoded or
// encoded for a GET, a LIST or a watch in JSON of the stored version. Every other form is
// made from the object.
//
// An Accept clause may ask for something else in place of objects: their metadata alone, which
// comes from the stored bytes as well, or a table, whose columns package table knows. A
// Status is never shown as either.
//
// # What is posted and not kept
//
// A review is created, answered by the authorizer that judges the requests themselves, and
// forgotten (rules H200, H205). What is posted to a door of an object, such as a binding to a
// pod, is handed to what the catalogue has for that door (rules B51, B52).
//
// # Errors
//
// The layers beneath return API statuses; an error that is none becomes a 500 with its text
// (rule H189). A conflict is explained here, and only here, because only here it is known
// whether the sender may read the object.
package server
