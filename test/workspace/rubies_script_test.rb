# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# script/rubies, without building a root.
class RubiesScriptTest < Minitest::Test
  include CommandLine

  SCRIPT = File.join(Checkout::ROOT, "script/rubies")

  def test_help_is_the_header
    result = rubies("--help")
    assert_equal [0, ""], [result.status.exitstatus, result.err]
    assert_match(%r{\Ascript/rubies: .*^  4\.0 .*^  4\.1-dev .*PITWALL_RUBY_SOURCES.*^Exit status: .* 5 no source}m,
                 result.out)
    refute_match(/^#|set -euo/, result.out)
  end

  def test_bad_arguments
    write_source("src/ruby")
    {
      %w[frob] => [2, /no such command: frob \(make, /],
      %w[make nope] => [2, /no such root: nope \(there are: 3\.3 3\.4 4\.0 4\.1-dev\)/],
      %w[remove ../x] => [2, %r{no such root: \.\./x }],
      %w[run] => [2, /run which\?/],
      %w[run 4.0 --] => [2, /run what\?/],
      %w[run nope -- true] => [2, /no such root: nope /],
      %w[source] => [2, /the source of which\?/],
      %w[source 3.3] => [5, /3\.3: Debian's packages, not a source/],
      %w[make ./absent.tar.gz] => [5, %r{absent: no such file or folder: .*/absent\.tar\.gz}],
      %w[make x=absent] => [5, %r{x: no such file or folder: .*/absent}],
      %w[make src/] => [5, %r{src: .*/src holds no source of Ruby \(no configure\.ac\)}],
      %w[make 4.0=src/ruby] => [2, /4\.0 is the name of another root; choose a name: NAME=PATH/],
      %w[make .x=src/ruby] => [2, /a root cannot be called '\.x'; choose a name: NAME=PATH/],
      %w[make a/b=src/ruby] => [2, %r{a root cannot be called 'a/b'}]
    }.each { |arguments, (status, line)| assert_one_line(status, /\Arubies: #{line}/, rubies(*arguments), arguments) }
  end

  def test_a_missing_archive
    [file("sources"), file("absent")].each do |folder|
      FileUtils.mkdir_p(file("sources"))
      %w[make source].product(%w[4.0 4.1-dev]).each do |command, name|
        mend = "put Ruby's source archive there or set PITWALL_RUBY_SOURCES"
        assert_one_line(5, /\Arubies: #{name}: no ruby-#{name}\S*\.tar\.\* in #{folder}; #{mend}/,
                        rubies(command, name, env: { "PITWALL_RUBY_SOURCES" => folder }))
      end
    end
    both = rubies("make", "4.0", "4.1-dev")
    assert_equal [5, 2], [both.status.exitstatus, both.err.lines.size], both.err
  end

  def test_the_newest_archive
    %w[ruby-4.0.9.tar.xz ruby-4.0.10.tar.gz ruby-4.0.11.tar.gz.asc ruby-4.1.0.tar.xz ruby-4.1-dev-20260728.tar.xz
       ruby-4.1-dev-20261101.tar.bz2]
      .each { |name| write("sources/#{name}") }
    Dir.mkdir(file("sources/ruby-4.0.12.tar.xz"))
    assert_equal [file("sources/ruby-4.0.10.tar.gz"), file("sources/ruby-4.1-dev-20261101.tar.bz2")],
                 %w[4.0 4.1-dev].map { |name| source(name) }
  end

  def test_names_of_other_rubies
    write("src/ruby-3.5.0.tar.gz")
    write_source("src/my.ruby")
    roots = { "3.5.0" => "src/ruby-3.5.0.tar.gz", "my.ruby" => "src/my.ruby",
              "mine" => "src/my.ruby" }.to_h do |name, path|
      digest = digest(path)
      assert_match(/\A\h{64}\z/, digest)
      write_root(name, "ruby 9.9 #{name}", "#{digest} #{file(path)}")
      [name, path]
    end
    assert_equal "3.5.0     ruby 9.9 3.5.0\nmine      ruby 9.9 mine\nmy.ruby   ruby 9.9 my.ruby\n", rubies("list").out
    ["src/ruby-3.5.0.tar.gz", "src/my.ruby", "#{@dir}/src/my.ruby/", "my.ruby", "mine",
     "mine=src/my.ruby"].each do |argument|
      result = rubies("make", argument)
      assert_equal [0, ""], [result.status.exitstatus, result.err], argument
      assert_match(/\A(3\.5\.0|my\.ruby|mine): already made\n\z/, result.out)
    end
    roots.each { |name, path| assert_equal file(path), source(name) }
    assert_one_line 2, /no such root: x \(there are: 3\.3 3\.4 4\.0 4\.1-dev 3\.5\.0 mine my\.ruby\)/,
                    rubies("run", "x", "--", "true")
  end

  # Run by root, the script calls debootstrap, which is absent or has no mirror here.
  def test_a_changed_source
    write("sources/ruby-4.0.5.tar.xz", "old")
    write_root("4.0", "ruby 4.0.5", "#{digest("sources/ruby-4.0.5.tar.xz")} #{file("sources/ruby-4.0.5.tar.xz")}")
    assert_equal "4.0: already made\n", rubies("make", "4.0").out
    write("sources/ruby-4.0.5.tar.xz", "new")
    result = rubies("make", "4.0", env: { "PITWALL_DEBIAN_MIRROR" => "file:///nonexistent" })
    assert_equal "4.0: its source has changed, making it again\n", result.out
    assert_match(Process.uid.zero? ? /\Arubies: (4\.0: )?debootstrap / : /\Arubies: make needs root$/, result.err)
    assert_equal Process.uid.zero? ? 1 : 4, result.status.exitstatus
    assert_equal "4.0       ruby 4.0.5\n", rubies("list").out
  end

  def test_what_a_folder_holds_is_what_counts
    write_source("src/ruby")
    before = digest("src/ruby")
    File.utime(0, 0, file("src/ruby/configure.ac"))
    assert_equal before, digest("src/ruby")
    write("src/ruby/new.c")
    refute_equal before, digest("src/ruby")
  end

  def test_of_a_git_work_tree_what_git_would_take
    write_source("src/ruby")
    write("src/ruby/.gitignore", "*.o\n")
    write("src/ruby/gone.c")
    git = ["git", "-C", file("src/ruby"), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    assert system(*git, "init", "--quiet") && system(*git, "add", ".") && system(*git, "commit", "--quiet", "-m", "one")
    before = digest("src/ruby")
    write("src/ruby/built.o")
    assert_equal before, digest("src/ruby")
    changes = [-> { write("src/ruby/new.c") }, -> { write("src/ruby/configure.ac", "changed") },
               -> { File.delete(file("src/ruby/gone.c")) }]
    digests = changes.map { |change| change.call; digest("src/ruby") }
    assert_equal 4, [before, *digests].uniq.size
  end

  def test_what_is_no_root_stays
    write("rubies/photos/cat.jpg")
    write_source("src/photos")
    assert_one_line 2, %r{rubies/photos is there and is not a root; choose another name}, rubies("make", "src/photos")
    assert_one_line 2, /no such root: photos/, rubies("remove", "photos")
    assert_one_line 2, /no such root: photos/, rubies("run", "photos", "--", "true")
    assert_equal "", rubies("list").out
    return unless Process.uid.zero?

    write_root("mine", "ruby 9.9")
    assert_equal 0, rubies("remove").status.exitstatus
    assert_equal %w[cat.jpg photos], Dir.glob("**/*", base: file("rubies")).map { |path| File.basename(path) }.sort
  end

  private

  def rubies(*arguments, env: {})
    capture({ "PITWALL_RUBIES" => file("rubies"), "PITWALL_RUBY_SOURCES" => file("sources") }.merge(env), SCRIPT,
            *arguments)
  end

  def source(name) = rubies("source", name).out.chomp

  def digest(path)
    result = rubies("__digest", file(path))
    assert_equal [0, ""], [result.status.exitstatus, result.err]
    result.out.chomp
  end

  def write(path, content = "")
    FileUtils.mkdir_p(File.dirname(file(path)))
    File.write(file(path), content)
  end

  def write_source(path) = write("#{path}/configure.ac")

  def write_root(name, *stamp) = write("rubies/#{name}/etc/pitwall-root", "#{stamp.join("\n")}\n")
end
