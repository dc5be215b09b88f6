/** What the server reads; hovers and quick fixes are asked for these only. */
export const DOCUMENTS: { scheme: string; language: string; pattern?: string }[] = [
  ...["file", "untitled", "vscode-notebook-cell"].map((scheme) => ({ scheme, language: "python" })),
  ...["shellscript", "yaml", "toml", "pip-requirements", "dockerfile"].map((language) => ({ scheme: "file", language })),
  ...["json", "jsonc"].map((language) => ({
    scheme: "file",
    language,
    pattern: "**/{*ds*config*,*deepspeed*,*zero*}.json",
  })),
];
