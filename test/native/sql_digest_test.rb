# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall"

# Which statements are one query.
class SqlDigestTest < Minitest::Test
  # Each list is one query.
  ALIKE = [
    ["SELECT * FROM a WHERE id = 1", "select *  from a\n where ID = 23", "SELECT * FROM a WHERE id = -1.5e-3", "SELECT * FROM a WHERE id = 'x''y'",
     "SELECT * FROM a WHERE id = $1", "SELECT * FROM a WHERE id = ?", "SELECT * FROM a WHERE id = 'it\\'s'", "SELECT * FROM a WHERE id = $$a'b$$",
     "SELECT * FROM a WHERE id = $t$a $$ b$t$", "/* request 7 */ SELECT * FROM a WHERE id = 1 -- by anybody", "SELECT * FROM a WHERE id = 0x1f",
     "SELECT * FROM a WHERE id = NULL", "SELECT * FROM a WHERE id = TRUE"],
    ["SELECT a FROM b WHERE c IN (1)", "SELECT a FROM b WHERE c IN (1, 2, 3)", "SELECT a FROM b WHERE c IN ($1,$2)", "SELECT a FROM b WHERE c IN (#{(1..3000).to_a.join(",")})",
     "SELECT a FROM b WHERE c IN ('a', NULL, -2)"],
    ["INSERT INTO a (b, c) VALUES (1, 2)", "INSERT INTO a (b, c) VALUES (1, 2), (3, 'x'), (NULL, 4)", "INSERT INTO a (b, c) VALUES #{Array.new(500) { "(?, ?)" }.join(", ")}"],
    ["SELECT `a` FROM b WHERE c = \"x\"", "SELECT `a` FROM b WHERE c = \"y\""],
    ["SELECT a - 1", "SELECT a - 2"], ["LIMIT 1 OFFSET 2", "LIMIT 10 OFFSET 20"], ["SELECT 1", "SELECT .5", "SELECT 'unclosed", "SELECT $x$ unclosed"]
  ].freeze
  OTHERS = ["", " ", "SELECT", "SELECT a", "SELECT b", "SELECT a, b", "SELECT \"a\"", "SELECT \"A\"", "SELECT a.b", "SELECT a1", "SELECT a2", "SELECT a::int",
            "SELECT * FROM a WHERE id IS NULL", "SELECT * FROM a WHERE id > 1", "SELECT (1), (a)", "SELECT a + 1", "SELECT $", "SELECT :name", "SELECT a WHERE (b) = (1)"].freeze

  def digest(sql) = Pitwall::Native.sql_digest(sql)

  def setup = Pitwall.load_native!

  def test_alike
    ALIKE.each { |statements| assert_equal [digest(statements.first)], statements.map { |sql| digest(sql) }.uniq, statements.map { |sql| [sql[0, 60], digest(sql)] }.inspect }
  end

  def test_different
    all = ALIKE.map(&:first) + OTHERS
    same = all.group_by { |sql| digest(sql) }.values.select { |group| group.size > 1 }
    assert_equal [["", " "]], same
  end

  # Whatever the bytes: a number of 48 bits, never 0, and the text is left alone.
  def test_any_bytes
    random = Random.new(1)
    pieces = ["'", '"', "`", "--", "/*", "*/", "$", "$a$", "\\", "1", "a", "(", ")", ",", "?", " ", "\0", "\xff", "-", "1e+"]
    2000.times do
      sql = Array.new(random.rand(12)) { pieces.sample(random: random) }.join.b.freeze
      assert_includes 1..(1 << 48) - 1, digest(sql), sql.inspect
    end
    assert_equal digest("SELECT 'a'" + " x" * 100_000), digest("SELECT 'b'" + " x" * 200_000), "of long ones the beginning"
  end
end
