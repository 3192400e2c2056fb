/** Sets the title of the browser tab. The name of the innermost part comes first, and empty parts are left out. */
export function setTitle(...parts: (string | null | undefined)[]): void {
  document.title = [...parts.filter((part) => part != null && part.trim() !== ''), 'Purser'].join(
    ' – ',
  )
}
