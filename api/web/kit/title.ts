/**
 * Sets the title of the browser tab to the names of the shown parts of the console. The innermost part comes first, and
 * parts without a name are left out.
 */
export function setTitle(...parts: (string | null | undefined)[]): void {
  document.title = [...parts.filter((part) => part != null && part.trim() !== ''), 'Purser'].join(
    ' – ',
  )
}
