// Keeps options such as `--flags` on one line: browsers break lines after hyphens.
for (const code of document.querySelectorAll(":not(pre) > code")) {
    code.innerHTML = code.innerHTML.replace(/-+[\w-]+/g, '<span class="option">$&</span>');
}
