package hub

import "syscall"

// diskFull lists the errors of a full disk: ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL.
var diskFull = []error{syscall.Errno(39), syscall.Errno(112)}
