-- What Neovim shows and does, as one line of JSON. Started with the program in $PROGRAM and the server's Python in $PYTHON.
local seen = {}
vim.opt.swapfile = false
vim.ui.select = function(items, options, choose) choose(items[1], 1) end
local function wait(condition) return vim.wait(20000, condition, 20) end
local function shown()
  local rows = {}
  for _, d in ipairs(vim.diagnostic.get(0)) do
    table.insert(rows, { line = d.lnum, column = d.col, code = tostring(d.code), source = d.source })
  end
  table.sort(rows, function(a, b) return a.line < b.line end)
  return rows
end

vim.cmd('edit ' .. vim.fn.fnameescape(vim.env.PROGRAM))
vim.bo.filetype = 'python'
local id = vim.lsp.start_client({
  name = 'dtdebug',
  cmd = { vim.env.PYTHON, '-m', 'dtdebug_lsp' },
  root_dir = vim.fn.fnamemodify(vim.env.PROGRAM, ':h'),
})
vim.lsp.buf_attach_client(0, id)
wait(function() return #vim.diagnostic.get(0) > 0 end)
seen.opened = shown()

local first = seen.opened[1]
local place = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = 0, character = 30 } }
for _, answer in pairs(vim.lsp.buf_request_sync(0, 'textDocument/hover', place, 20000) or {}) do
  seen.hover = answer.result and answer.result.contents.value
end

vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# "é😀"' })
wait(function() local d = shown()[1]; return d and d.line == first.line + 1 end)
seen.moved = shown()

vim.cmd('let &undolevels = &undolevels') -- a step of Undo of its own, as a key gives
vim.api.nvim_win_set_cursor(0, { seen.moved[#seen.moved].line + 1, seen.moved[#seen.moved].column })
vim.lsp.buf.code_action({ context = { only = { 'quickfix' }, diagnostics = {} } })
wait(function() return #vim.diagnostic.get(0) < #seen.moved end)
seen.fixed = shown()
seen.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
vim.cmd('undo')
wait(function() return #vim.diagnostic.get(0) == #seen.moved end)
seen.undone = shown()
io.stdout:write(vim.fn.json_encode(seen) .. '\n')
vim.cmd('qa!')
