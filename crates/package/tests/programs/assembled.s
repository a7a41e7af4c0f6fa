.globl assembled, assembled_counter
.data
assembled_counter: .long 7
table: .long 8
.text
.type assembled,@function
assembled: leal 1(%rdi), %eax
ret
.size assembled, .-assembled
.section .note.GNU-stack,"",@progbits
