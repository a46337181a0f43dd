// Command pawl serves the Kubernetes API from one process.
//
//	pawl serve        run a server
//	pawl backup       take a backup, of a running server too
//	pawl restore      make a data folder from a backup
//	pawl check        verify a data folder
//	pawl compact      forget history, and give back its room
//	pawl version      say which pawl this is
//	pawl completion   complete commands and flags in your shell
//	pawl help         explain a command
//
// What a command has to say goes to stdout, everything else to stderr. An error is a line
// that begins with "pawl: ", and if something can be done about it a second that begins with
// "pawl: hint: ".
//
// What takes more than a second tells on stderr how it gets on.
//
// Exit codes: 0 it did what was asked; 1 it could not, or found damage; 2 it was not understood; 130 and 143
// SIGINT or SIGTERM ended it: a server a second one.
//
// Everything a process has only one of is touched here and nowhere below: arguments,
// standard streams, signals, the exit code, and klog's logger.
package main
