// What frameworks do through JDBC; test_jdbc.py has what it prints.
import java.sql.*;
import java.util.*;

public class Tried {
    public static void main(String[] given) throws SQLException {
        try (Connection connection = DriverManager.getConnection(given[0])) {
            Statement plain = connection.createStatement();
            plain.execute("CREATE TABLE parts (id serial PRIMARY KEY, name varchar(20) NOT NULL, "
                + "price numeric(8,2) DEFAULT 0, made timestamptz, tags text[], token uuid)");
            plain.execute("CREATE INDEX parts_name ON parts (name)");
            plain.execute("CREATE TABLE uses (part int REFERENCES parts (id))");
            connection.setAutoCommit(false);
            PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO parts (name, price, made, tags, token) VALUES (?, ?, ?, ?, ?)",
                Statement.RETURN_GENERATED_KEYS);
            for (int at = 0; at < 10; at++) {
                insert.setString(1, "part " + at);
                insert.setBigDecimal(2, new java.math.BigDecimal(at + ".50"));
                insert.setTimestamp(3, new Timestamp(0));
                insert.setArray(4, connection.createArrayOf("text", new String[] {"a", null}));
                insert.setObject(5, new UUID(0, at));
                insert.addBatch();
            }
            System.out.println("batch " + Arrays.stream(insert.executeBatch()).sum());
            ResultSet keys = insert.getGeneratedKeys();
            int sum = 0;
            while (keys.next()) sum += keys.getInt("id");
            System.out.println("keys " + sum);
            Savepoint point = connection.setSavepoint("here");
            try {
                plain.execute("INSERT INTO parts (id, name) VALUES (1, 'again')");
            } catch (SQLException error) {
                System.out.println("error " + error.getSQLState());
                connection.rollback(point);
            }
            connection.commit();
            PreparedStatement select = connection.prepareStatement(
                "SELECT id, name, price, made, tags, token FROM parts WHERE id = ANY (?) AND price < ? ORDER BY id");
            for (int round = 0; round < 7; round++) {
                select.setArray(1, connection.createArrayOf("int4", new Integer[] {round, round + 1}));
                select.setBigDecimal(2, new java.math.BigDecimal("100"));
                ResultSet rows = select.executeQuery();
                while (rows.next()) {
                    if (round == 6) System.out.println(rows.getInt(1) + " " + rows.getString(2) + " "
                        + rows.getBigDecimal(3) + " " + rows.getTimestamp(4).getTime() + " "
                        + Arrays.toString((Object[]) rows.getArray(5).getArray()) + " " + rows.getObject(6));
                }
            }
            select.setFetchSize(3);
            select.setArray(1, connection.createArrayOf("int4", new Integer[] {1, 2, 3, 4, 5, 6, 7}));
            ResultSet few = select.executeQuery();
            int count = 0;
            while (few.next()) count++;
            System.out.println("fetched " + count);
            DatabaseMetaData data = connection.getMetaData();
            System.out.println(data.getDatabaseProductName());
            list("table", data.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME");
            list("column", data.getColumns(null, "public", "parts", "%"), "COLUMN_NAME", "TYPE_NAME",
                "COLUMN_SIZE", "NULLABLE", "COLUMN_DEF", "IS_AUTOINCREMENT");
            list("key", data.getPrimaryKeys(null, "public", "parts"), "COLUMN_NAME", "PK_NAME");
            list("index", data.getIndexInfo(null, "public", "parts", false, false), "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE");
            list("imported", data.getImportedKeys(null, "public", "uses"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME");
            list("exported", data.getExportedKeys(null, "public", "parts"), "FKTABLE_NAME");
            list("schema", data.getSchemas(null, "publ%"), "TABLE_SCHEM");
            list("catalog", data.getCatalogs(), "TABLE_CAT");
            data.getTypeInfo().close();
            data.getFunctions(null, null, "lower").close();
            data.getProcedures(null, null, "%").close();
            data.getTablePrivileges(null, "public", "%").close();
            data.getColumnPrivileges(null, "public", "parts", "%").close();
            data.getTableTypes().close();
            data.getBestRowIdentifier(null, "public", "parts", 0, true).close();
            data.getUDTs(null, "public", "%", null).close();
            data.getCrossReference(null, "public", "parts", null, "public", "uses").close();
            data.getClientInfoProperties().close();
            data.getFunctionColumns(null, null, "lower", "%").close();
            ResultSetMetaData of = select.getMetaData();
            System.out.println(of.getColumnTypeName(3) + " " + of.getPrecision(3));
            System.out.println(insert.getParameterMetaData().getParameterTypeName(5));
            connection.commit();
        }
    }

    static void list(String kind, ResultSet rows, String... names) throws SQLException {
        while (rows.next()) {
            StringBuilder line = new StringBuilder(kind);
            for (String name : names) line.append(" ").append(rows.getString(name));
            System.out.println(line);
        }
    }
}
