// The C sources beside this file, as text. `python -m actors.spawner.bundle` makes the module when it builds the bundle.
export const PREPARE_C: string;
export const FALLBACK_C: string;
