/** A setting that cannot be used: `message` is one line that names the variable and says what it must be. */
export class ConfigError extends Error {}
