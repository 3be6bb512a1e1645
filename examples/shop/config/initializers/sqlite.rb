# Rails 7 has SQLite wait for a locked database in C, holding Ruby's own lock: a
# thread waiting for another of its process stops that one from ever finishing.
# Rails 8 sleeps in Ruby instead; so does this.
if Rails::VERSION::MAJOR < 8
  ActiveSupport.on_load(:active_record_sqlite3adapter) do
    prepend(Module.new do
      private

      def configure_connection
        super
        pause = 0.001
        tries = @config.fetch(:timeout) / 1000 / pause
        @raw_connection.busy_handler { |count| count < tries && sleep(pause) }
      end
    end)
  end
end
