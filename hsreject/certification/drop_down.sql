-- The GeoPackage extension "Schema" (OGC 12-128r18, annex F.9): values that the column 'reference' of
-- the layer may have, which QGIS offers as a drop-down. The layer and the names of the classes follow.
CREATE TABLE gpkg_data_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL, name TEXT,
    title TEXT, description TEXT, mime_type TEXT, constraint_name TEXT,
    PRIMARY KEY (table_name, column_name), UNIQUE (table_name, name));
CREATE TABLE gpkg_data_column_constraints (constraint_name TEXT NOT NULL,
    constraint_type TEXT NOT NULL, value TEXT, min NUMERIC, min_is_inclusive BOOLEAN,
    max NUMERIC, max_is_inclusive BOOLEAN, description TEXT,
    UNIQUE (constraint_name, constraint_type, value));
CREATE TABLE IF NOT EXISTS gpkg_extensions (table_name TEXT, column_name TEXT,
    extension_name TEXT NOT NULL, definition TEXT NOT NULL, scope TEXT NOT NULL,
    UNIQUE (table_name, column_name, extension_name));
INSERT INTO gpkg_extensions SELECT column1, NULL, 'gpkg_schema',
    'http://www.geopackage.org/spec/#extension_schema', 'read-write'
    FROM (VALUES ('gpkg_data_columns'), ('gpkg_data_column_constraints'));
